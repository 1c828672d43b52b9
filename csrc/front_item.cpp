// Addresses of items from a block of offsets.
#include "front_item.hpp"

#include <cstring>

#include "front_buffer.hpp"

namespace tilewright {

namespace {

// Offsets of elements over the places of an access, as an array of NumPy has them.
struct Offsets {
    const char* bytes;
    int64_t item_bytes;
    bool is_signed;
    int64_t extents[kMaxAxes], strides[kMaxAxes];  // of the axes of the access; 1 and 0 where shared

    int64_t at(int64_t place_bytes) const {
        switch (item_bytes) {
            case 1: return is_signed ? read<int8_t>(place_bytes) : read<uint8_t>(place_bytes);
            case 2: return is_signed ? read<int16_t>(place_bytes) : read<uint16_t>(place_bytes);
            case 4: return is_signed ? read<int32_t>(place_bytes) : read<uint32_t>(place_bytes);
            default: return read<int64_t>(place_bytes);
        }
    }

  private:
    template <typename Number>
    int64_t read(int64_t place_bytes) const {
        Number number;
        std::memcpy(&number, bytes + place_bytes, sizeof number);
        return static_cast<int64_t>(number);
    }
};

// False if the array has not the shape or the elements of offsets.
bool read_offsets(const Py_buffer& view, const Shape& shape, Offsets& offsets) {
    const char kind = view.format == nullptr || view.format[1] != '\0' ? '\0' : view.format[0];
    offsets.is_signed = std::strchr("bhilq", kind) != nullptr;
    const bool is_integer = offsets.is_signed || std::strchr("BHILQ", kind) != nullptr;
    const int missing = shape.rank - view.ndim;
    if (kind == '\0' || !is_integer || missing < 0) return false;
    offsets.bytes = static_cast<const char*>(view.buf);
    offsets.item_bytes = view.itemsize;
    for (int axis = 0; axis < shape.rank; ++axis) {
        const int64_t extent = axis < missing ? 1 : view.shape[axis - missing];
        if (extent != 1 && extent != shape.extents[axis]) return false;
        offsets.extents[axis] = extent;
        offsets.strides[axis] = extent == 1 ? 0 : view.strides[axis - missing];
    }
    return true;
}

bool cuts_first_axis_only(const Region& box) {
    if (box.shape.rank == 0) return false;
    for (int axis = 1; axis < box.shape.rank; ++axis) {
        if (box.low[axis] != 0 || box.high[axis] != box.shape.extents[axis]) return false;
    }
    return true;
}

// Axes before those along which elements lie side by side; those have item_bytes together.
int num_outer_axes(const Form& addresses, const Region& box, bool is_masked, const Offsets& offsets,
                   int64_t& item_bytes) {
    int outer = addresses.shape.rank;
    if (is_masked && !cuts_first_axis_only(box)) return outer;
    for (const int first = is_masked ? 1 : 0; outer > first; --outer) {
        const int axis = outer - 1;
        const int64_t extent = addresses.shape.extents[axis];
        if (offsets.extents[axis] != 1) break;
        if (extent != 1 && addresses.strides[axis] != item_bytes) break;
        item_bytes *= extent;
    }
    return outer;
}

// All places of the axes from one on. Numbers wrap as NumPy's do: such addresses are mapped nowhere.
struct Lister {
    const Form& addresses;
    const Region& box;
    const Offsets& offsets;
    int64_t step;
    int num_axes;
    std::vector<int64_t>& found;

    void list(int axis, uint64_t address, int64_t place_bytes) const {
        if (axis == num_axes) {
            const auto offset = static_cast<uint64_t>(offsets.at(place_bytes));
            found.push_back(static_cast<int64_t>(address + offset * static_cast<uint64_t>(step)));
            return;
        }
        const auto stride = static_cast<uint64_t>(addresses.strides[axis]);
        for (int64_t place = box.low[axis]; place < box.high[axis]; ++place) {
            list(axis + 1, address + static_cast<uint64_t>(place) * stride,
                 place_bytes + place * offsets.strides[axis]);
        }
    }
};

}  // namespace

bool list_items(const Form& addresses, const Region& box, bool is_masked, int64_t step,
                PyObject* value, Items& items) {
    const Buffer buffer(value, PyBUF_STRIDES | PyBUF_FORMAT);
    Offsets offsets;
    if (!read_offsets(buffer.view(), addresses.shape, offsets)) return false;
    items.addresses.clear();
    items.item_bytes = step;
    const int outer = num_outer_axes(addresses, box, is_masked, offsets, items.item_bytes);
    const Lister lister{addresses, box, offsets, step, outer, items.addresses};
    lister.list(0, static_cast<uint64_t>(addresses.base), 0);
    return true;
}

}  // namespace tilewright
