// Integers that a kernel computes with before any block.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright {

void bind_scalars(nanobind::module_& module);

}  // namespace tilewright
