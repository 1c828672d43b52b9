// The native event core as the private module tilewright.native._core: names and conversions only.
#include "banked.hpp"
#include "core.hpp"
#include "front_module.hpp"
#include "issuer.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace tilewright {

void raise_fault(Fault kind, int64_t first, int64_t second, int64_t third) {
    const nb::object type = nb::module_::import_("tilewright.engine.fault").attr("CoreFault");
    const nb::object fault = type(static_cast<int>(kind), first, second, third);
    PyErr_SetObject(type.ptr(), fault.ptr());
    throw nb::python_error();
}

namespace {

using OwnedColumn = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;

// A NumPy array that owns the values of one part of the effect log.
template <size_t Part>
OwnedColumn column_of(const std::vector<std::tuple<int64_t, int64_t>>& effects) {
    auto* values = new std::vector<int64_t>(effects.size());
    for (size_t row = 0; row < effects.size(); ++row) (*values)[row] = std::get<Part>(effects[row]);
    const nb::capsule owner(values, [](void* held) noexcept {
        delete static_cast<std::vector<int64_t>*>(held);
    });
    return OwnedColumn(values->data(), {values->size()}, owner);
}

// A Python server may refer to its engine: such a circle is the garbage collector's to find.
int traverse_core(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    for (const Server& server : nb::inst_ptr<Core>(self)->servers()) {
        Py_VISIT(server.service.ptr());
    }
    return 0;
}

int clear_core(PyObject* self) {
    for (Server& server : nb::inst_ptr<Core>(self)->servers()) server.service = nb::none();
    return 0;
}

PyType_Slot core_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_core)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_core)},
    {0, nullptr},
};

std::vector<int64_t> offsets(const CompiledGraph& compiled) {
    return compiled.graph->offsets;
}

}  // namespace
}  // namespace tilewright

NB_MODULE(_core, module) {
    using namespace tilewright;
    module.doc() = "Native event core of tilewright.engine.";
    bind_banked(module);
    bind_front(module);

    nb::class_<CompiledGraph>(module, "CompiledGraph").def_prop_ro("offsets", &offsets);

    bind_issuer(module);

    nb::class_<Core>(module, "Core", nb::type_slots(core_slots))
        .def(nb::init<int64_t, int64_t, int64_t>())
        .def_prop_ro("now_ps", &Core::now_ps)
        .def_prop_ro("events", &Core::events)
        .def("add_server", &Core::add_server, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg().none())
        .def("add_banked_memory", &Core::add_banked_memory)
        .def("add_simple_memory", &Core::add_simple_memory)
        .def("add_route", &Core::add_route)
        .def("add_signal", &Core::add_signal)
        .def("remove_signal", &Core::remove_signal)
        .def("add_gate", &Core::add_gate)
        .def("add_round_trip", &Core::add_round_trip)
        .def("add_issuer",
             [](const Core& core, const nb::object& spec) { return new Issuer(core, spec); },
             nb::keep_alive<0, 1>())
        .def("compile",
             [](const Core& core, const nb::list& rows) { return CompiledGraph{core.compile(rows)}; })
        .def("submit",
             [](Core& core, const CompiledGraph& compiled, int64_t owner,
                const std::vector<int64_t>& after) {
                 return core.submit(compiled.graph, owner, after);
             })
        .def("submit_watched",
             [](Core& core, const CompiledGraph& compiled, int64_t owner,
                const std::vector<int64_t>& after) {
                 return core.submit_watched(compiled.graph, owner, after);
             })
        .def("perform",
             [](Core& core, const CompiledGraph& compiled, int64_t owner) {
                 return core.perform(compiled.graph, owner);
             })
        .def("perform_rows", &Core::perform_rows)
        .def("performed_task", &Core::performed_task)
        .def("end_owner", &Core::end_owner)
        .def("next_wake", &Core::next_wake)
        .def("set_limits", &Core::set_limits)
        .def_prop_ro("was_submitted", &Core::was_submitted)
        .def("raise_signal", &Core::raise_signal)
        .def("signal_value", &Core::signal_value)
        .def("watch", &Core::watch)
        .def("is_complete", &Core::is_complete)
        .def("advance", &Core::advance)
        .def("is_drained", &Core::is_drained)
        .def("take_effects", &Core::take_effects)
        .def("take_effect_columns",
             [](Core& core) {
                 const auto effects = core.take_effects();
                 return nb::make_tuple(column_of<0>(effects), column_of<1>(effects));
             })
        .def("set_trace", &Core::set_trace)
        .def("take_trace", &Core::take_trace)
        .def("take_memory_trace", &Core::take_memory_trace)
        .def("memory_counters", &Core::memory_counters)
        .def("memory_openings", &Core::memory_openings)
        .def("server_counters",
             [](Core& core, uint32_t server) { return std::tuple_cat(core.server_counters(server)); })
        .def("busy_ps", &Core::busy_ps)
        .def("route_counters",
             [](Core& core, uint32_t route) { return std::tuple_cat(core.route_counters(route)); })
        .def("first_violation", &Core::first_violation)
        .def("waiting_tasks", &Core::waiting_tasks)
        .def("waiting_packets", &Core::waiting_packets)
        .def("tamper", &Core::tamper);
}
