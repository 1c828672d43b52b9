// The native event core of tilewright.engine, as the private module tilewright.engine._core.
#include <nanobind/nanobind.h>

NB_MODULE(_core, module) { module.doc() = "Native event core of tilewright.engine."; }
