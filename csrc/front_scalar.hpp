// Integers that a kernel computes with before any block.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright {

// An integer of the language, of Python's integer; nullptr with an error set if there is no memory.
PyObject* make_scalar(PyTypeObject* type, PyObject* number);

void bind_scalars(nanobind::module_& module);

}  // namespace tilewright
