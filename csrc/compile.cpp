// From the rows of a Python TaskGraph to the form the core runs.
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

using Block = nb::ndarray<const int64_t, nb::shape<-1, 6>, nb::c_contig, nb::device::cpu>;

// Reads one row; anything that is not as engine/graph.py documents it is a fault with its number.
class RowReader {
  public:
    RowReader(PyObject* row, int64_t number) : row_(row), number_(number) {}

    int64_t field(Py_ssize_t place) const { return integer(PyTuple_GET_ITEM(row_, place)); }

    void read_afters(std::vector<uint32_t>& afters) const {
        PyObject* tasks = PyTuple_GET_ITEM(row_, 6);
        for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(tasks); ++place) {
            const int64_t task = integer(PyTuple_GET_ITEM(tasks, place));
            if (task < 0 || task >= number_) fail();
            afters.push_back(static_cast<uint32_t>(task));
        }
    }

    Span read_signals(std::vector<SignalAmount>& signals, Py_ssize_t place, size_t known) const {
        Span span{static_cast<uint32_t>(signals.size()), 0};
        PyObject* pairs = PyTuple_GET_ITEM(row_, place);
        for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(pairs); ++index) {
            PyObject* pair = PyTuple_GET_ITEM(pairs, index);
            if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2) fail();
            const int64_t signal = integer(PyTuple_GET_ITEM(pair, 0));
            const int64_t amount = integer(PyTuple_GET_ITEM(pair, 1));
            if (signal < 0 || amount < 1) fail();
            if (signal >= static_cast<int64_t>(known)) {
                raise_fault(Fault::kUnknownSignal, number_, signal);
            }
            signals.push_back({static_cast<uint32_t>(signal), amount});
        }
        span.last = static_cast<uint32_t>(signals.size());
        return span;
    }

    // The number of the row's cut, made if it has segments.
    uint32_t read_cut(std::vector<Cut>& cuts, int64_t num_bytes, int64_t packet_bytes) const {
        PyObject* segments = PyTuple_GET_ITEM(row_, 10);
        if (PyTuple_GET_SIZE(segments) == 0) return kNone;
        const int64_t bytes = integer(PyTuple_GET_ITEM(segments, 0));
        const int64_t stride = integer(PyTuple_GET_ITEM(segments, 1));
        if (num_bytes < 1 || bytes < 1 || num_bytes % bytes != 0) fail();
        int64_t reach;
        if (stride == std::numeric_limits<int64_t>::min() ||
            __builtin_mul_overflow(num_bytes / bytes - 1, std::abs(stride), &reach) ||
            __builtin_add_overflow(reach, bytes, &reach)) {
            fail();
        }
        cuts.push_back({bytes, stride, (bytes - 1) / packet_bytes + 1});
        return static_cast<uint32_t>(cuts.size() - 1);
    }

    [[noreturn]] void fail() const { raise_fault(Fault::kBadRow, number_); }

  private:
    int64_t integer(PyObject* value) const {
        if (!PyLong_CheckExact(value)) fail();
        int overflow = 0;
        const int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow != 0) fail();
        return number;
    }

    PyObject* row_;
    int64_t number_;
};

}  // namespace

GraphPtr Core::compile(const nb::list& entries) const {
    auto graph = std::make_shared<Graph>();
    compile_into(*graph, entries);
    return graph;
}

void Core::compile_into(Graph& graph, const nb::list& entries) const {
    graph.definitions.reserve(entries.size());
    for (nb::handle entry : entries) {
        if (PyTuple_CheckExact(entry.ptr())) {
            const auto number = static_cast<int64_t>(graph.definitions.size());
            const RowReader row(entry.ptr(), number);
            Definition task{.kind = static_cast<Kind>(row.field(0))};
            task.amount = row.field(2);
            task.delay_ps = row.field(3);
            task.tag = row.field(5);
            task.served_effect = row.field(9);
            row.read_afters(graph.afters);
            task.extra = graph.add_extra({
                .effect = row.field(4),
                .waits = row.read_signals(graph.signals, 7, signals_.size()),
                .raises = row.read_signals(graph.signals, 8, signals_.size()),
            });
            task.cut = row.read_cut(graph.cuts, task.amount, packet_bytes_);
            append_task(graph, task, row.field(1));
            continue;
        }
        const auto block = nb::cast<Block>(entry);
        graph.definitions.reserve(graph.definitions.size() + block.shape(0));
        for (size_t index = 0; index < block.shape(0); ++index) {
            const int64_t* row = block.data() + 6 * index;
            Definition task{.kind = static_cast<Kind>(row[0])};
            task.amount = row[2];
            task.delay_ps = row[3];
            task.extra = graph.add_extra({.effect = row[4]});
            task.tag = row[5];
            append_task(graph, task, row[1]);
        }
    }
    graph.link_dependents();
}

void Core::append_task(Graph& graph, const Definition& task, int64_t target) const {
    const auto number = static_cast<int64_t>(graph.definitions.size());
    const bool has_packets = task.kind == Kind::kTransfer || task.kind == Kind::kExchange;
    const int64_t least = task.kind == Kind::kTimer || task.kind == Kind::kEarlier ? 0 : 1;
    const bool is_low = target < 0 || task.amount < least || task.delay_ps < 0;
    const bool has_effects =
        task.served_effect >= kNoEffect &&
        (task.extra == kNone || graph.extras[task.extra].effect >= kNoEffect);
    if (is_low || !has_effects || task.tag == std::numeric_limits<int64_t>::min()) {
        raise_fault(Fault::kBadRow, number);
    }
    const uint32_t route = check_target(number, task.kind, target);
    if (has_packets) check_address(number, task, route, graph);
    int64_t num_packets = has_packets ? (task.amount - 1) / packet_bytes_ + 1 : 1;
    if (task.cut != kNone) {
        const Cut& cut = graph.cuts[task.cut];
        num_packets = task.amount / cut.segment_bytes * cut.segment_packets;
    }
    if (num_packets > kMaxPackets) raise_fault(Fault::kPacketLimit, number, task.amount);
    if (task.kind == Kind::kEarlier) graph.earlier_ids.push_back(task.amount);
    graph.offsets.push_back(graph.num_ids);
    graph.num_ids += num_packets;
    graph.max_delay_ps = std::max(graph.max_delay_ps, task.delay_ps);
    Definition& added = graph.definitions.emplace_back(task);
    added.route = route;
    added.num_packets = static_cast<uint32_t>(num_packets);
    added.afters_end = static_cast<uint32_t>(graph.afters.size());
}

// An access stays inside the memory that it ends in.
void Core::check_address(int64_t row, const Definition& task, uint32_t target,
                         const Graph& graph) const {
    const bool is_exchange = task.kind == Kind::kExchange;
    const Route& route = routes_[is_exchange ? trips_[target].out : target];
    __builtin_prefetch(&hops_[route.first_hop]);
    if (route.memory == kNone) return;
    const int64_t capacity = memories_[servers_[route.memory].memory]->capacity_bytes;
    int64_t low = 0, high = task.amount;  // from the tag
    if (task.cut != kNone) {
        const Cut& cut = graph.cuts[task.cut];
        const int64_t last = (task.amount / cut.segment_bytes - 1) * cut.stride_bytes;
        low = std::min<int64_t>(last, 0);
        high = std::max<int64_t>(last, 0) + cut.segment_bytes;
    }
    if (task.tag < -low || high > capacity || task.tag > capacity - high) {
        raise_fault(Fault::kBadAddress, row, task.tag, route.memory);
    }
}

uint32_t Core::check_target(int64_t row, Kind kind, int64_t target) const {
    if (kind == Kind::kTimer || kind == Kind::kEarlier) return kNone;
    if (kind == Kind::kExchange) {
        if (target >= static_cast<int64_t>(trips_.size())) {
            raise_fault(Fault::kUnknownTrip, row, target);
        }
        __builtin_prefetch(&routes_[trips_[target].back]);
        return static_cast<uint32_t>(target);
    }
    if (target >= static_cast<int64_t>(routes_.size())) {
        raise_fault(Fault::kUnknownRoute, row, target);
    }
    const Route& route = routes_[target];
    if (kind == Kind::kHold && route.num_hops != 1) {
        raise_fault(Fault::kNotOneServer, row, target);
    }
    if (kind == Kind::kHold && route.memory != kNone) {
        raise_fault(Fault::kHeldMemory, row, route.memory);
    }
    if (kind == Kind::kTransfer && route.rateless != kNone) {
        raise_fault(Fault::kNoRate, row, route.rateless);
    }
    return static_cast<uint32_t>(target);
}

}  // namespace tilewright
