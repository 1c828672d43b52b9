// How a block of addresses lies in memory, and its elements in an array; executor/layout.py is
// the same in Python, and effect.py makes arrays of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "front_form.hpp"
#include "front_order.hpp"
#include "front_value.hpp"

namespace tilewright {

// What a type of blocks says, read once: types live as long as Python.
struct TypeView {
    Ref shape_tuple;
    Shape shape;
    Ref dtype;
    Ref storage;  // NumPy's dtype of the elements
    Ref plain;    // one of the same size that the buffer protocol knows
    bool is_extension = false;  // storage is not plain
    bool is_floating = false;
    bool is_signed = false;     // an integer with a sign
    int64_t item_bytes = 0;
    int64_t num_bytes = 0;
};

const TypeView& type_view(PyObject* block_type);
PyObject* block_type_of(PyObject* dtype, const Shape& shape);  // borrowed; an error throws

// The bytes of an access in the order of their addresses, and which element is where.
struct Layout {
    int64_t segment_bytes = 0;
    int64_t num_segments = 0;
    int64_t num_bytes = 0;
    int64_t item_bytes = 0;
    Region box;
    uint8_t order[kMaxAxes];  // axes of the block that places do not share, outermost in memory first
    int num_axes = 0;         // so many of them
    uint32_t flipped = 0;     // one bit for each axis of the block whose stride is negative
    bool shares = false;      // places of some axis share their addresses

    Layout() = default;

    // The access's spans are appended.
    Layout(const Form& addresses, const Region& box, int64_t item_bytes,
           std::vector<Strided>& spans);

    // Of elements in the order of a block's places, whose bytes lie anywhere: one long segment.
    Layout(const Region& box, int64_t item_bytes);

    std::span<const uint8_t> axes() const { return {order, static_cast<size_t>(num_axes)}; }
    int64_t extent(int axis) const { return box.high[axis] - box.low[axis]; }
    bool is_ordered() const;  // in memory as in a block, but for what lies outside the box
    // Whether the elements of the box are neighbours in a block; then the first of them.
    bool is_run(int64_t& first_element) const;
};

// Elements of a box between the order of memory and an array with these strides in bytes.
void scatter(const Layout& layout, const char* data, char* block, const int64_t* strides);
void gather(const Layout& layout, const char* block, const int64_t* strides, char* data);

}  // namespace tilewright
