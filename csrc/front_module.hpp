// The front of the language: values, commands and accesses of programs, beside the event core.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright {

void bind_front(nanobind::module_& module);

}  // namespace tilewright
