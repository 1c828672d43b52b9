// Translation, its cost, and the pieces of an access.
#include "front_path.hpp"

#include <algorithm>
#include <utility>

#include "front_collect.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

constexpr int64_t kUnknown = -1;
constexpr int64_t kNoWalk = 0;
constexpr int64_t kGap = -1;  // the place of a run that no segment touches

int64_t number(const nb::object& object, const char* name) {
    return nb::cast<int64_t>(object.attr(name));
}

// Of a page's walks that may be under way: the walker's command, or none if there are none at all.
int64_t own_walk(const Ref& walks, PyObject* walker) {
    const Py_ssize_t count = PyTuple_GET_SIZE(walks.ptr());
    for (Py_ssize_t place = 0; place < count; ++place) {
        PyObject* walk = PyTuple_GET_ITEM(walks.ptr(), place);
        if (PyTuple_GET_ITEM(walk, 0) == walker) {
            return PyLong_AsLongLong(PyTuple_GET_ITEM(walk, 1));
        }
    }
    return count == 0 ? kNoWalk : kUnknown;
}

// Whether one of a page's walks is known to have ended.
bool has_ended(const Ref& walks) {
    static PyObject* has_walked = PyUnicode_InternFromString("has_walked");
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(walks.ptr()); ++place) {
        PyObject* walk = PyTuple_GET_ITEM(walks.ptr(), place);
        const Ref answer = checked(PyObject_CallMethodOneArg(
            PyTuple_GET_ITEM(walk, 0), has_walked, PyTuple_GET_ITEM(walk, 1)));
        if (answer.ptr() == Py_True) return true;
    }
    return false;
}

const Ref& no_walks() {
    static const Ref& empty = *new Ref(checked(PyTuple_New(0)));
    return empty;
}

// With one more at the end.
Ref extended(const Ref& walks, const Ref& walk) {
    const Py_ssize_t count = PyTuple_GET_SIZE(walks.ptr());
    const Ref all = checked(PyTuple_New(count + 1));
    for (Py_ssize_t place = 0; place < count; ++place) {
        PyTuple_SET_ITEM(all.ptr(), place, counted(PyTuple_GET_ITEM(walks.ptr(), place)));
    }
    PyTuple_SET_ITEM(all.ptr(), count, counted(walk.ptr()));
    return all;
}

}  // namespace

PathFinder::PathFinder(const nb::object& mmu, nb::object locate, nb::object channels)
    : locate_(std::move(locate)), channels_(std::move(channels)), spans_(nb::none()) {
    const nb::object spec = mmu.attr("spec");
    table_ = mmu.attr("table");
    tlb_ = mmu.attr("state").attr("tlb");
    page_bytes_ = number(spec, "page_bytes");
    tlb_entries_ = static_cast<size_t>(number(spec, "tlb_entries"));
    const nb::object counts = channels_.attr("num_of");
    num_channels_[0] = nb::cast<int64_t>(counts[nb::handle(executor.read)]);
    num_channels_[1] = nb::cast<int64_t>(counts[nb::handle(executor.write)]);
}

bool PathFinder::find_pieces(Spans spans, const Asker& by, std::vector<Piece>& pieces) {
    refresh_mappings();
    int64_t first = 0;
    for (const Strided& span : spans) {
        if (span.num_segments > 1 && span.stride_bytes > page_bytes_) {
            for (int64_t place = 0; place < span.num_segments; ++place) {
                const int64_t address = span.address + place * span.stride_bytes;
                const Strided one{address, 1, span.segment_bytes, span.segment_bytes};
                if (!find_pieces(one, first + place, by, pieces)) return false;
            }
        } else if (!find_pieces(span, first, by, pieces)) {
            return false;
        }
        first += span.num_segments;
    }
    return true;
}

// Every page between the first and the last byte has some of them. A gap may have other bytes.
bool PathFinder::find_pieces(const Strided& span, int64_t first, const Asker& by,
                             std::vector<Piece>& pieces) {
    const auto [address, num_segments, size, stride] = span;
    if (!find_runs(address, span.end()) && (num_segments == 1 || !find_strided_runs(span))) {
        return false;
    }
    const int64_t walk = look_up(address / page_bytes_, (span.end() - 1) / page_bytes_, by);
    split_runs();
    int64_t place = 0, done = 0;  // the next segment, and bytes of it that are found
    int64_t start = address;      // of the stretch
    for (const auto& [home, num_bytes] : stretches_) {
        const int64_t end = start + num_bytes;
        while (place < num_segments) {
            const int64_t at = address + place * stride + done;
            if (at >= end) break;
            const int64_t there = home.address + at - start;
            if (done > 0 || at + size > end) {  // a part of a segment
                const int64_t part = std::min(size - done, end - at);
                pieces.push_back({home.memory, there, first + place, 1, done, part, part, walk});
                done = (done + part) % size;
                place += done == 0;
            } else {
                const int64_t count =
                    std::min(num_segments - place, (end - at - size) / stride + 1);
                pieces.push_back(
                    {home.memory, there, first + place, count, 0, size, stride, walk});
                place += count;
            }
        }
        start = end;
    }
    return true;
}

// The fewest runs of neighbouring physical bytes; false if a byte is not mapped.
bool PathFinder::find_runs(int64_t address, int64_t end) {
    runs_.clear();
    while (address < end) {
        const Mapping* mapping = mapping_at(address);
        if (mapping == nullptr) return false;
        const int64_t num_bytes = std::min(end, mapping->high) - address;
        append_run(address + mapping->delta, num_bytes);
        address += num_bytes;
    }
    return true;
}

// The same of segments, if bytes between two of them are not mapped; as PageTable.strided_runs.
bool PathFinder::find_strided_runs(const Strided& span) {
    const auto [first, num_segments, size, stride] = span;
    for (int64_t place = 0; place < num_segments; ++place) {
        const int64_t address = first + place * stride;
        if (!find_runs(address, address + size)) return false;
    }
    runs_.clear();
    for (int64_t address = first; address < span.end();) {
        const Mapping* mapping = mapping_at(address);
        int64_t num_bytes;
        if (mapping == nullptr) {
            num_bytes = stride - (address - first) % stride;  // to the next segment
            runs_.push_back({kGap, num_bytes});
        } else {
            num_bytes = std::min(span.end(), mapping->high) - address;
            append_run(address + mapping->delta, num_bytes);
        }
        address += num_bytes;
    }
    return true;
}

// At the end, joined to the run before it, also across a gap, where it can be.
void PathFinder::append_run(int64_t physical, int64_t num_bytes) {
    const bool has_gap = !runs_.empty() && runs_.back().physical == kGap;
    const int64_t between = has_gap ? runs_.back().num_bytes : 0;
    const size_t num_before = runs_.size() - has_gap;
    if (num_before > 0) {
        Run& before = runs_[num_before - 1];
        if (before.physical + before.num_bytes + between == physical) {
            before.num_bytes += between + num_bytes;
            runs_.resize(num_before);
            return;
        }
    }
    runs_.push_back({physical, num_bytes});
}

const PathFinder::Mapping* PathFinder::mapping_at(int64_t address) {
    const auto holds = [address](const Mapping& each) {
        return each.low <= address && address < each.high;
    };
    if (last_mapping_ < mappings_.size() && holds(mappings_[last_mapping_])) {
        return &mappings_[last_mapping_];
    }
    auto above = std::upper_bound(
        mappings_.begin(), mappings_.end(), address,
        [](int64_t wanted, const Mapping& each) { return wanted < each.low; });
    if (above == mappings_.begin() || !holds(*(above - 1))) {
        const Mapping found = find_mapping(address);
        if (!holds(found)) return nullptr;
        if (mappings_.size() >= kMaxMappings) {
            mappings_.clear();
            above = mappings_.end();
        }
        above = mappings_.insert(above, found) + 1;
    }
    last_mapping_ = static_cast<size_t>(above - 1 - mappings_.begin());
    return &mappings_[last_mapping_];
}

// The last mapping of the table that begins at or before an address; an empty one if there is none.
PathFinder::Mapping PathFinder::find_mapping(int64_t address) const {
    const auto field_of = [](PyObject* span, Py_ssize_t name) {
        return PyLong_AsLongLong(PyTuple_GET_ITEM(span, name));
    };
    const auto field = [&](Py_ssize_t place, Py_ssize_t name) {
        return field_of(PyList_GET_ITEM(spans_.ptr(), place), name);
    };
    Py_ssize_t low = 0, high = PyList_GET_SIZE(spans_.ptr());
    while (low < high) {
        const Py_ssize_t middle = (low + high) / 2;
        if (field(middle, 0) <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) return {};
    PyObject* entry = PyList_GET_ITEM(spans_.ptr(), low - 1);
    PyObject* third = PyTuple_GET_ITEM(entry, 2);
    if (PyLong_Check(third)) return {field_of(entry, 0), field_of(entry, 1), field_of(entry, 2)};
    if (address >= field_of(entry, 1)) return {};
    const nb::object span = nb::handle(third).attr("span_at")(address);  // of a band, which repeats
    int overflow;  // of what lies nowhere
    PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(span.ptr(), 0), &overflow);
    if (overflow != 0) return {};
    return {field_of(span.ptr(), 0), field_of(span.ptr(), 1), field_of(span.ptr(), 2)};
}

// A page table that changes has another list from then on: what was found of the old one goes.
void PathFinder::refresh_mappings() {
    static PyObject* name = PyUnicode_InternFromString("spans");
    nb::object spans = checked(PyObject_GetAttr(table_.ptr(), name));
    if (spans.ptr() == spans_.ptr()) return;
    mappings_.clear();
    spans_ = std::move(spans);
}

// The last command whose walk somebody waits for that needs neighbouring pages.
int64_t PathFinder::look_up(int64_t first_page, int64_t last_page, const Asker& by) {
    int64_t walk = kNoWalk;
    for (int64_t page = first_page; page <= last_page; ++page) {
        walk = std::max(walk, look_up(page, by));
    }
    return walk;
}

// As Mmu.look_up of device/mmu.py.
int64_t PathFinder::look_up(int64_t page, const Asker& by) {
    static PyObject* to_end = PyUnicode_InternFromString("move_to_end");
    const Ref key = checked(PyLong_FromLongLong(page));
    PyObject* kept = PyDict_GetItemWithError(tlb_.ptr(), key.ptr());
    if (kept == nullptr) {
        if (PyErr_Occurred()) nb::raise_python_error();
        return walk_for(key.ptr(), no_walks(), by);
    }
    const Ref walks = borrow(kept);
    checked(PyObject_CallMethodOneArg(tlb_.ptr(), to_end, key.ptr()));
    int64_t walk = own_walk(walks, by.walker);
    if (walk == kUnknown) {
        if (!has_ended(walks)) return walk_for(key.ptr(), walks, by);
        if (PyODict_SetItem(tlb_.ptr(), key.ptr(), no_walks().ptr()) < 0) nb::raise_python_error();
        walk = kNoWalk;
    }
    ++num_hits_;
    return walk;
}

// A page that the TLB does not keep, or that others walk for.
int64_t PathFinder::walk_for(PyObject* page, const Ref& others, const Asker& by) {
    auto* type = reinterpret_cast<PyTypeObject*>(executor.walk);  // a tuple with names
    const Ref walk = checked(type->tp_alloc(type, 2));
    PyTuple_SET_ITEM(walk.ptr(), 0, counted(by.walker));
    PyTuple_SET_ITEM(walk.ptr(), 1, checked(PyLong_FromLongLong(by.command)).release().ptr());
    const Ref walks = extended(others, walk);
    if (PyODict_SetItem(tlb_.ptr(), page, walks.ptr()) < 0) nb::raise_python_error();
    ++num_walks_;
    if (nb::len(tlb_) > tlb_entries_) tlb_.attr("popitem")(nb::arg("last") = false);
    return by.command;
}

// Physical neighbours can be in two memories.
void PathFinder::split_runs() {
    stretches_.clear();
    for (const auto& [physical, num_bytes] : runs_) {
        if (physical == kGap) {
            stretches_.push_back({{kGap, 0}, num_bytes});
            continue;
        }
        const Home first = home(physical);
        const int64_t last = physical + num_bytes - 1;
        const Home expected{first.memory, first.address + num_bytes - 1};
        if (last / page_bytes_ == physical / page_bytes_ || home(last) == expected) {
            stretches_.push_back({first, num_bytes});
            continue;
        }
        for (int64_t at = physical; at <= last;) {
            const int64_t part = std::min(last + 1 - at, page_bytes_ - at % page_bytes_);
            stretches_.push_back({home(at), part});
            at += part;
        }
    }
}

PathFinder::Home PathFinder::home(int64_t physical) {
    const Extent& extent = extent_at(physical);
    return {extent.memory, physical + extent.delta};
}

const PathFinder::Extent& PathFinder::extent_at(int64_t physical) {
    if (last_extent_ < extents_.size() && extents_[last_extent_].holds(physical)) {
        return extents_[last_extent_];
    }
    auto above = std::upper_bound(
        extents_.begin(), extents_.end(), physical,
        [](int64_t wanted, const Extent& each) { return wanted < each.low; });
    if (above == extents_.begin() || !(above - 1)->holds(physical)) {
        const nb::object found = locate_(physical);
        const auto memory = nb::cast<int64_t>(found[0]), address = nb::cast<int64_t>(found[1]),
                   num_bytes = nb::cast<int64_t>(found[2]);
        const Extent made{physical - address, physical + num_bytes, memory, address - physical};
        above = extents_.insert(above, made) + 1;
    }
    last_extent_ = static_cast<size_t>(above - 1 - extents_.begin());
    return extents_[last_extent_];
}

int64_t PathFinder::take_channel(bool is_write) {
    if (num_channels_[is_write] == 1) return 0;
    const nb::handle access = is_write ? executor.write : executor.read;
    return nb::cast<int64_t>(channels_.attr("take")(access));
}

int64_t PathFinder::trip(PyObject* program, int64_t memory, bool is_write, int64_t channel) {
    std::vector<int64_t>& trips = trips_[is_write];
    const auto place = static_cast<size_t>(memory * num_channels_[is_write] + channel);
    if (place >= trips.size()) trips.resize(place + 1, kUnknown);
    if (trips[place] == kUnknown) {
        const nb::handle access = is_write ? executor.write : executor.read;
        trips[place] =
            nb::cast<int64_t>(nb::handle(program).attr("trip")(memory, access, channel));
    }
    return trips[place];
}

nb::tuple PathFinder::take_counts() {
    return nb::make_tuple(std::exchange(num_hits_, 0), std::exchange(num_walks_, 0));
}

int PathFinder::traverse(visitproc visit, void* arg) {
    for (const nb::object* held : {&locate_, &channels_, &table_, &tlb_, &spans_}) {
        Py_VISIT(held->ptr());
    }
    return 0;
}

void PathFinder::clear() {
    for (nb::object* held : {&locate_, &channels_, &table_, &tlb_, &spans_}) {
        *held = nb::none();
    }
}

void bind_path(nb::module_& module) {
    nb::class_<PathFinder>(module, "PathFinder", nb::type_slots(collected_slots<PathFinder>))
        .def(nb::init<const nb::object&, nb::object, nb::object>())
        .def("take_counts", &PathFinder::take_counts);
}

}  // namespace tilewright
