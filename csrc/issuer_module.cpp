// The issuer as Python sees it: rows of plain numbers become what its commands take.
#include "issuer.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>

namespace nb = nanobind;

namespace tilewright {

namespace {

int64_t integer(PyObject* value) { return PyLong_AsLongLong(value); }

int64_t field(nb::handle row, Py_ssize_t place) {
    return integer(PyTuple_GET_ITEM(row.ptr(), place));
}

std::vector<int64_t> integers_of(const nb::list& numbers) {
    std::vector<int64_t> found;
    found.reserve(numbers.size());
    for (nb::handle number : numbers) found.push_back(integer(number.ptr()));
    return found;
}

std::vector<IssuedAccess> accesses_of(const nb::list& rows) {
    std::vector<IssuedAccess> found;
    found.reserve(rows.size());
    for (nb::handle row : rows) {
        found.push_back({field(row, 0), field(row, 1), field(row, 2), field(row, 3), field(row, 4),
                         field(row, 5)});
    }
    return found;
}

std::vector<Streamed> streamed_of(const nb::list& rows) {
    std::vector<Streamed> found;
    for (nb::handle row : rows) found.push_back({field(row, 0), field(row, 1)});
    return found;
}

std::vector<SignalAmount> signals_of(PyObject* pairs) {
    std::vector<SignalAmount> found;
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(pairs); ++place) {
        const nb::handle pair = PyTuple_GET_ITEM(pairs, place);
        found.push_back({static_cast<uint32_t>(field(pair, 0)), field(pair, 1)});
    }
    return found;
}

std::vector<MessageStep> steps_of(const nb::list& rows) {
    std::vector<MessageStep> found;
    for (nb::handle row : rows) {
        found.push_back({
            .kind = static_cast<Kind>(field(row, 0)),
            .target = field(row, 1),
            .amount = field(row, 2),
            .tag = field(row, 3),
            .before = field(row, 4),
            .waits = signals_of(PyTuple_GET_ITEM(row.ptr(), 5)),
            .raises = signals_of(PyTuple_GET_ITEM(row.ptr(), 6)),
            .served_effect = field(row, 7),
            .ends = PyObject_IsTrue(PyTuple_GET_ITEM(row.ptr(), 8)) == 1,
        });
    }
    return found;
}

std::optional<CompiledGraph> take_piece(Issuer& issuer) {
    GraphPtr piece = issuer.take_piece();
    return piece ? std::optional(CompiledGraph{std::move(piece)}) : std::nullopt;
}

void bind_commands(nb::class_<Issuer>& bound) {
    bound
        .def("compute",
             [](Issuer& issuer, int64_t plan, const nb::list& operands) {
                 return issuer.compute(plan, integers_of(operands));
             })
        .def("load",
             [](Issuer& issuer, int64_t num_bytes, const nb::list& accesses, const nb::list& after,
                int64_t served) {
                 return issuer.load(num_bytes, accesses_of(accesses), integers_of(after), served);
             })
        .def("store",
             [](Issuer& issuer, int64_t value, int64_t num_bytes, const nb::list& accesses,
                const nb::list& after, int64_t served) {
                 return issuer.store(value, num_bytes, accesses_of(accesses), integers_of(after),
                                     served);
             })
        .def("update",
             [](Issuer& issuer, int64_t plan, int64_t value, const nb::list& operands) {
                 return issuer.update(plan, value, streamed_of(operands));
             })
        .def("send",
             [](Issuer& issuer, int64_t value, int64_t num_bytes, const nb::list& steps) {
                 return issuer.send(value, num_bytes, steps_of(steps));
             })
        .def("receive", [](Issuer& issuer, int64_t num_bytes, const nb::list& steps) {
            return issuer.receive(num_bytes, steps_of(steps));
        });
}

}  // namespace

void bind_issuer(nb::module_& module) {
    nb::class_<Issuer> bound(module, "Issuer");
    bind_commands(bound);
    bound.def("add_plan", &Issuer::add_plan)
        .def("park", &Issuer::park)
        .def_prop_ro("last_issue", &Issuer::last_issue)
        .def("open_composite", &Issuer::open_composite)
        .def("close_composite", &Issuer::close_composite)
        .def("release", &Issuer::release)
        .def("task_of", &Issuer::task_of)
        .def("walk_of", &Issuer::walk_of)
        .def("stall", &Issuer::stall)
        .def_prop_ro("stalls", &Issuer::stalls)
        .def("finish", &Issuer::finish)
        .def_prop_ro("num_commands", &Issuer::num_commands)
        .def_prop_ro("num_waiting", &Issuer::num_waiting)
        .def_prop_ro("spilled_bytes", &Issuer::spilled_bytes)
        .def_prop_ro("far_free_bytes", &Issuer::far_free_bytes)
        .def("take_piece", &take_piece)
        .def("note_first_id", &Issuer::note_first_id)
        .def("task_id", &Issuer::task_id);
}

}  // namespace tilewright
