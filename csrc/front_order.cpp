// Which earlier commands an access has to come after.
#include "front_order.hpp"

#include <algorithm>
#include <utility>

namespace nb = nanobind;

namespace tilewright {

namespace {

constexpr int kPageShift = 16;  // shared with executor/order.py

int64_t first_page(const Strided& span) { return span.address >> kPageShift; }
int64_t last_page(const Strided& span) { return (span.end() - 1) >> kPageShift; }

// Tuples of four integers.
std::vector<Strided> spans_of(const nb::list& list) {
    std::vector<Strided> spans;
    for (nb::handle each : list) {
        int64_t fields[4];
        for (Py_ssize_t place = 0; place < 4; ++place) {
            fields[place] = PyLong_AsLongLong(PyTuple_GetItem(each.ptr(), place));
            if (PyErr_Occurred()) nb::raise_python_error();
        }
        spans.push_back({fields[0], fields[1], fields[2], fields[3]});
    }
    return spans;
}

nb::list list_of(const std::vector<int64_t>& tasks) {
    nb::list list;
    for (const int64_t task : tasks) list.append(task);
    return list;
}

}  // namespace

bool Strided::overlaps(const Strided& other) const {
    if (end() <= other.address || other.end() <= address) return false;
    const int64_t stride = num_segments > 1 ? stride_bytes : other.stride_bytes;
    for (const Strided* span : {this, &other}) {
        if (span->num_segments > 1 && span->stride_bytes != stride) return true;
    }
    if (stride < std::max(segment_bytes, other.segment_bytes)) return true;
    int64_t ahead = (other.address - address) % stride;
    if (ahead < 0) ahead += stride;
    return ahead < segment_bytes || stride - ahead < other.segment_bytes;
}

void AccessOrder::before_read(Spans spans, int64_t command, std::vector<int64_t>& after) const {
    overlapping(writes_, spans, command, after);
    after_acquired(command, after);
}

void AccessOrder::before_write(Spans spans, int64_t command, std::vector<int64_t>& after) const {
    if (releases_) {
        for (const Issued& each : recent_) {
            if (each.command > command - window_) after.push_back(each.task);
        }
        return;
    }
    overlapping(reads_, spans, command, after);
    std::vector<int64_t> writes;  // what is among the reads too comes twice, as in Python
    overlapping(writes_, spans, command, writes);
    after.insert(after.end(), writes.begin(), writes.end());
    after_acquired(command, after);
}

void AccessOrder::after_acquired(int64_t command, std::vector<int64_t>& after) const {
    if (acquired_ && acquired_->command > command - window_) after.push_back(acquired_->task);
}

void AccessOrder::note_read(Spans spans, int64_t command, int64_t task) {
    note(reads_, spans, command, task);
}

void AccessOrder::note_write(Spans spans, int64_t command, int64_t task) {
    note(writes_, spans, command, task);
    releases_ = false;
}

void AccessOrder::clear() {
    ++turn_;
    for (Table* table : {&reads_, &writes_}) {
        if (table->size() > kKeptPages) table->clear();
    }
    recent_.clear();
    releases_ = false;
    acquired_.reset();
}

void AccessOrder::note(Table& table, Spans spans, int64_t command, int64_t task) {
    const int64_t oldest = command - window_;
    while (!recent_.empty() && recent_.front().command <= oldest) recent_.pop_front();
    recent_.push_back({command, task});
    for (const Strided& span : spans) {
        for (int64_t page = first_page(span); page <= last_page(span); ++page) {
            auto& [turn, entries] = table[page];
            if (std::exchange(turn, turn_) != turn_) entries.clear();
            while (!entries.empty() && entries.front().command <= oldest) entries.pop_front();
            entries.push_back({command, task, span});
        }
    }
}

void AccessOrder::overlapping(const Table& table, Spans spans, int64_t command,
                              std::vector<int64_t>& after) const {
    if (table.empty()) return;
    const int64_t oldest = command - window_;
    for (const Strided& span : spans) {
        for (int64_t page = first_page(span); page <= last_page(span); ++page) {
            const auto found = table.find(page);
            if (found == table.end() || found->second.turn != turn_) continue;
            for (const Entry& entry : found->second.entries) {
                if (entry.command <= oldest || !entry.span.overlaps(span)) continue;
                const bool is_known = std::find(after.begin(), after.end(), entry.task) != after.end();
                if (!is_known) after.push_back(entry.task);
            }
        }
    }
}

void bind_order(nb::module_& module) {
    nb::class_<AccessOrder>(module, "AccessOrder")
        .def(nb::init<int64_t>())
        .def("before_read",
             [](const AccessOrder& order, const nb::list& spans, int64_t command) {
                 std::vector<int64_t> after;
                 order.before_read(spans_of(spans), command, after);
                 return list_of(after);
             })
        .def("before_write",
             [](const AccessOrder& order, const nb::list& spans, int64_t command) {
                 std::vector<int64_t> after;
                 order.before_write(spans_of(spans), command, after);
                 return list_of(after);
             })
        .def("note_read", [](AccessOrder& order, const nb::list& spans, int64_t command,
                             int64_t task) { order.note_read(spans_of(spans), command, task); })
        .def("note_write", [](AccessOrder& order, const nb::list& spans, int64_t command,
                              int64_t task) { order.note_write(spans_of(spans), command, task); })
        .def("release", &AccessOrder::release)
        .def("acquire", &AccessOrder::acquire);
}

}  // namespace tilewright
