// Memory of Python's objects that are made and dropped all the time.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace tilewright {

// Objects of one type that are gone: the next ones take their place, so that few bytes are touched.
// The type is collected by Python's garbage collector, which finalizes an object once: one that it
// has finalized is not used again.
template <typename Object>
class Spares {
  public:
    // A new reference to an object whose fields before `zeros_end` are zero, and all others anything;
    // nullptr with an error set if there is no memory.
    static Object* take(PyTypeObject* type, size_t zeros_end) {
        if (spares.empty()) return reinterpret_cast<Object*>(type->tp_alloc(type, 0));
        PyObject* object = spares.back();
        spares.pop_back();
        char* fields = reinterpret_cast<char*>(object) + sizeof(PyObject);
        std::memset(fields, 0, zeros_end - sizeof(PyObject));
        PyObject_Init(object, type);
        PyObject_GC_Track(object);
        return reinterpret_cast<Object*>(object);
    }

    // An object that nobody refers to, that refers to nobody and that is not tracked.
    static void give(PyTypeObject* type, PyObject* object) {
        if (spares.size() < kMost && !PyObject_GC_IsFinalized(object)) {
            spares.push_back(object);
        } else {
            type->tp_free(object);
        }
    }

  private:
    static constexpr size_t kMost = 256;
    static inline std::vector<PyObject*> spares;
};

}  // namespace tilewright
