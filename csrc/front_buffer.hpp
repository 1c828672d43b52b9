// The bytes of arrays.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright {

// The bytes of an array while somebody works on them.
class Buffer {
  public:
    Buffer(PyObject* array, int flags) {
        if (PyObject_GetBuffer(array, &view_, flags) < 0) nanobind::raise_python_error();
    }
    Buffer(const Buffer&) = delete;
    ~Buffer() { PyBuffer_Release(&view_); }

    char* bytes() const { return static_cast<char*>(view_.buf); }
    const Py_buffer& view() const { return view_; }

  private:
    Py_buffer view_{};
};

}  // namespace tilewright
