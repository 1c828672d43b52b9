// Arithmetic on blocks of f32 without NumPy's way from a call to its loop.
#pragma once

#include <cstddef>
#include <span>

#include "front_array.hpp"

namespace tilewright {

// A sum, difference, product or quotient, in an array of the pool: IEEE leaves no choice in them but
// what a NaN has for its bits, so whatever makes one is NumPy's affair, as are other dtypes and blocks
// that do not lie in order. A new reference; nullptr without an error: not here.
PyObject* arithmetic(PyObject* function, std::span<PyObject* const> operands, ArrayPool& pool);

}  // namespace tilewright
