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
    using Row = std::tuple<int64_t, int64_t, int64_t>;
    type.def("can_accept", &Core::can_accept)
        .def("room_ps", &Core::room_ps)
        .def("accept",
             [](Core& core, int64_t now_ps, int64_t access_id, bool is_write, int64_t address,
                int64_t num_bytes) {
                 core.accept(now_ps, access_id, is_write, address, num_bytes);
             })
        .def("next_ps", &Core::next_ps)
        .def("least_read_ps", &Core::least_read_ps)
        .def("advance",
             [](Core& core, int64_t now_ps) {
                 std::vector<Row> rows;
                 for (const Completion& found : core.advance(now_ps)) {
                     rows.emplace_back(found.access_id, found.done_ps, found.refresh_ps);
                 }
                 return rows;
             })
        .def("counters", &Core::counters)
        .def("openings", &Core::openings);
}

}  // namespace

void bind_banked(nb::module_& module) {
    auto banked = nb::class_<BankedCore>(module, "BankedCore")
                      .def("__init__", [](BankedCore* core, const nb::object& spec) {
                          new (core) BankedCore(std::make_shared<MemoryShape>(spec));
                      });
    add_methods(banked);
    auto simple = nb::class_<SimpleCore>(module, "SimpleCore")
                      .def("__init__", [](SimpleCore* core, const nb::object& spec) {
                          new (core) SimpleCore(spec);
                      });
    add_methods(simple);
#define TILEWRIGHT_NAME(name) timing_fields.append(#name "_ps");
    nb::list timing_fields;
    TILEWRIGHT_TIMING_FIELDS(TILEWRIGHT_NAME)
#undef TILEWRIGHT_NAME
    module.attr("TIMING_FIELDS") = nb::tuple(timing_fields);
}

}  // namespace tilewright
