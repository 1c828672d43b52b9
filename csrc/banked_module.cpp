// The memories as classes of the private module: names and conversions only.
#include "banked.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace tilewright {

namespace {

// The face that both memories show to Python.
template <typename Core>
void add_methods(nb::class_<Core>& type) {
    type.def("can_accept", &Core::can_accept)
        .def("room_ps", &Core::room_ps)
        .def("accept", &Core::accept)
        .def("next_ps", &Core::next_ps)
        .def("advance", &Core::advance)
        .def("counters", &Core::counters);
}

}  // namespace

void bind_banked(nb::module_& module) {
    auto banked = nb::class_<BankedCore>(module, "BankedCore")
                      .def(nb::init<const std::vector<int64_t>&, std::vector<uint8_t>>());
    add_methods(banked);
    auto simple = nb::class_<SimpleCore>(module, "SimpleCore")
                      .def(nb::init<int64_t, int64_t, int64_t, int64_t>());
    add_methods(simple);
}

}  // namespace tilewright
