// Layouts of accesses and the copies between memory and arrays.
#include "front_layout.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

namespace nb = nanobind;

namespace tilewright {

// --- types

const TypeView& type_view(PyObject* block_type) {
    static auto& views = *new std::unordered_map<PyObject*, TypeView>();
    TypeView& view = views[block_type];
    if (view.storage.is_valid()) return view;
    const nb::handle type(block_type);
    view.shape_tuple = type.attr("shape");
    if (!read_numbers(view.shape_tuple.ptr(), view.shape.extents, view.shape.rank)) {
        nb::raise_python_error();
    }
    view.dtype = type.attr("dtype");
    const nb::object storage = view.dtype.attr("storage");
    view.item_bytes = nb::cast<int64_t>(storage.attr("itemsize"));
    view.num_bytes = nb::cast<int64_t>(type.attr("num_bytes"));
    view.is_floating = nb::cast<bool>(view.dtype.attr("is_floating")());
    view.is_signed = nb::cast<bool>(view.dtype.attr("is_int_signed")());
    view.is_extension = nb::cast<int>(storage.attr("isbuiltin")) != 1;
    view.plain = view.is_extension ? nb::steal(PyUnicode_FromFormat("u%lld", view.item_bytes))
                                   : storage;
    view.storage = storage;
    return view;
}

PyObject* block_type_of(PyObject* dtype, const Shape& shape) {
    static auto& types = *new std::map<std::vector<int64_t>, PyObject*>();
    static std::vector<int64_t> key;
    key.assign(1, reinterpret_cast<int64_t>(dtype));
    key.insert(key.end(), shape.extents, shape.extents + shape.rank);
    const auto known = types.find(key);
    if (known != types.end()) return known->second;
    const Ref extents = tuple_of(shape.extents, shape.rank);
    PyObject* parts[] = {dtype, extents.ptr()};
    PyObject* made = checked(PyObject_Vectorcall(language.block_type, parts, 2, nullptr))
                         .release()
                         .ptr();
    types.emplace(key, made);
    return made;
}

// --- layouts

namespace {

// An axis whose places lie apart in memory.
struct Axis {
    int64_t stride;  // positive
    int64_t extent;
    int axis;  // of the block
};

// The rows of an access: all places of the outer axes but the last, which is inside a row.
void append_rows(int64_t start, const Axis* outer, int count, int64_t segment_bytes,
                 std::vector<Strided>& spans) {
    if (count == 0) {
        spans.push_back({start, 1, segment_bytes, segment_bytes});
    } else if (count == 1) {
        spans.push_back({start, outer->extent, segment_bytes, outer->stride});
    } else {
        for (int64_t place = 0; place < outer->extent; ++place) {
            append_rows(start + place * outer->stride, outer + 1, count - 1, segment_bytes, spans);
        }
    }
}

// One axis of a copy: how far apart neighbours are on both sides.
struct Walk {
    int64_t extent, data_step, block_step;
};

template <size_t size>
void copy_items(const char* from, char* to, int64_t count, int64_t from_step, int64_t to_step) {
    for (int64_t place = 0; place < count; ++place) {
        std::memcpy(to + place * to_step, from + place * from_step, size);
    }
}

void copy_line(const char* from, char* to, int64_t count, int64_t from_step, int64_t to_step,
               int64_t item_bytes) {
    if (from_step == item_bytes && to_step == item_bytes) {
        std::memcpy(to, from, count * item_bytes);
        return;
    }
    switch (item_bytes) {
        case 1: return copy_items<1>(from, to, count, from_step, to_step);
        case 2: return copy_items<2>(from, to, count, from_step, to_step);
        case 4: return copy_items<4>(from, to, count, from_step, to_step);
        default: return copy_items<8>(from, to, count, from_step, to_step);
    }
}

// The axes of a copy; the last of the data's is the innermost. Moves the block to its first element.
template <typename Block>
std::vector<Walk> walks_of(const Layout& layout, const int64_t* strides, Block*& block,
                           bool spreads) {
    std::vector<Walk> walks;
    const int rank = layout.box.shape.rank;
    uint32_t walked = 0;
    int64_t data_step = layout.item_bytes;
    for (int place = layout.num_axes - 1; place >= 0; --place) {
        const int axis = layout.order[place];
        const bool is_flipped = (layout.flipped >> axis) & 1;
        const int64_t step = strides[axis], extent = layout.extent(axis);
        walks.push_back({extent, data_step, is_flipped ? -step : step});
        if (is_flipped) block += (extent - 1) * step;
        data_step *= extent;
        walked |= uint32_t{1} << axis;
    }
    for (int axis = 0; axis < rank; ++axis) {
        const int64_t extent = layout.extent(axis);
        block += layout.box.low[axis] * strides[axis];
        if ((walked >> axis) & 1 || extent == 1) continue;
        // places that share an address: all of them read it, and the last of them is written
        if (spreads) {
            walks.push_back({extent, 0, strides[axis]});
        } else {
            block += (extent - 1) * strides[axis];
        }
    }
    std::reverse(walks.begin(), walks.end());
    return walks;
}

template <typename Copy>
void walk(const Walk* walks, size_t count, int64_t data, int64_t block, const Copy& copy) {
    if (count == 0) {
        copy(Walk{1, 0, 0}, data, block);
    } else if (count == 1) {
        copy(*walks, data, block);
    } else {
        for (int64_t place = 0; place < walks->extent; ++place) {
            walk(walks + 1, count - 1, data + place * walks->data_step,
                 block + place * walks->block_step, copy);
        }
    }
}

}  // namespace

Layout::Layout(const Form& addresses, const Region& region, int64_t item,
               std::vector<Strided>& spans)
    : item_bytes(item), box(region) {
    int64_t start = addresses.base;
    Axis axes[kMaxAxes];
    for (int axis = 0; axis < region.shape.rank; ++axis) {
        const int64_t stride = addresses.strides[axis], extent = this->extent(axis);
        start += stride * region.low[axis];
        if (extent == 1) continue;
        if (stride == 0) {
            shares = true;
            continue;
        }
        if (stride < 0) {
            start += stride * (extent - 1);
            flipped |= uint32_t{1} << axis;
        }
        // after those of the same stride: the order of the block decides
        int place = num_axes++;
        const Axis found{stride < 0 ? -stride : stride, extent, axis};
        for (; place > 0 && axes[place - 1].stride < found.stride; --place) {
            axes[place] = axes[place - 1];
        }
        axes[place] = found;
    }
    for (int place = 0; place < num_axes; ++place) {
        order[place] = static_cast<uint8_t>(axes[place].axis);
    }
    int inner = num_axes;
    segment_bytes = item;
    while (inner > 0 && axes[inner - 1].stride == segment_bytes) {
        segment_bytes *= axes[--inner].extent;
    }
    num_segments = 1;
    for (int place = 0; place < inner; ++place) num_segments *= axes[place].extent;
    num_bytes = num_segments * segment_bytes;
    append_rows(start, axes, inner, segment_bytes, spans);
}

Layout::Layout(const Region& region, int64_t item) : num_segments(1), item_bytes(item), box(region) {
    num_bytes = item;
    for (int axis = 0; axis < region.shape.rank; ++axis) {
        if (extent(axis) > 1) order[num_axes++] = static_cast<uint8_t>(axis);
        num_bytes *= extent(axis);
    }
    segment_bytes = num_bytes;
}

bool Layout::is_ordered() const {
    if (flipped != 0 || shares) return false;
    return std::is_sorted(order, order + num_axes);
}

bool Layout::is_run(int64_t& first_element) const {
    first_element = 0;
    bool is_partial = false;  // some axis further in is not whole
    int64_t step = 1;
    for (int axis = box.shape.rank - 1; axis >= 0; --axis) {
        if (is_partial && extent(axis) != 1) return false;
        is_partial |= extent(axis) != box.shape.extents[axis];
        first_element += box.low[axis] * step;
        step *= box.shape.extents[axis];
    }
    return true;
}

void scatter(const Layout& layout, const char* data, char* block, const int64_t* strides) {
    const std::vector<Walk> walks = walks_of(layout, strides, block, true);
    walk(walks.data(), walks.size(), 0, 0, [&](const Walk& line, int64_t from, int64_t to) {
        copy_line(data + from, block + to, line.extent, line.data_step, line.block_step,
                  layout.item_bytes);
    });
}

void gather(const Layout& layout, const char* block, const int64_t* strides, char* data) {
    const std::vector<Walk> walks = walks_of(layout, strides, block, false);
    walk(walks.data(), walks.size(), 0, 0, [&](const Walk& line, int64_t to, int64_t from) {
        copy_line(block + from, data + to, line.extent, line.block_step, line.data_step,
                  layout.item_bytes);
    });
}

}  // namespace tilewright
