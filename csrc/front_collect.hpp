// For the garbage collector: objects of compiled code that refer to those of Python.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright {

template <typename Object>
int traverse_object(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nanobind::inst_ready(self)) return 0;
    return nanobind::inst_ptr<Object>(self)->traverse(visit, arg);
}

template <typename Object>
int clear_object(PyObject* self) {
    nanobind::inst_ptr<Object>(self)->clear();
    return 0;
}

// Slots of a class that has traverse and clear.
template <typename Object>
inline PyType_Slot collected_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_object<Object>)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_object<Object>)},
    {0, nullptr},
};

}  // namespace tilewright
