// Index arithmetic that stays arithmetic; language/affine.py is the same in Python, and says why.
//
// Every function gives the exact result or false: then Python decides, in words if it must. Among
// the reasons is a number beyond 64 bits.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tilewright {

constexpr int kMaxAxes = 16;  // shared with language/affine.py

struct Shape {
    int rank = 0;
    int64_t extents[kMaxAxes];

    bool operator==(const Shape& other) const {
        return rank == other.rank && std::equal(extents, extents + rank, other.extents);
    }
};

// The shape that both can be seen as.
bool broadcast_shapes(const Shape& left, const Shape& right, Shape& out);

// Where a mask is true: low <= place < high on every axis.
struct Region {
    Shape shape;
    int64_t low[kMaxAxes], high[kMaxAxes];

    static Region whole(const Shape& shape);
    static Region empty(const Shape& shape);
    static Region slab(const Shape& shape, int axis, int64_t low, int64_t high);

    bool operator==(const Region& other) const;
    bool is_whole() const;
    bool is_empty() const;
    Region broadcast(const Shape& wide) const;  // over a shape that broadcast_shapes gave
    bool expanded(int axis, Region& out) const;
    bool both(const Region& other, Region& out) const;
    bool either(const Region& other, Region& out) const;
    bool inverted(Region& out) const;
};

// Integers over the places of a block: base + stride_0 i + stride_1 j + ...
struct Form {
    int64_t base = 0;
    Shape shape;
    int64_t strides[kMaxAxes];

    Form constant(int64_t value) const;
    Form broadcast(const Shape& wide) const;  // over a shape that broadcast_shapes gave
    bool has_strides() const;
    bool range(int64_t& low, int64_t& high) const;  // the least and the greatest value
    bool expanded(int axis, Form& out) const;
    bool shifted(int64_t amount, Form& out) const;
    bool scaled(int64_t factor, Form& out) const;
    bool plus(const Form& other, Form& out) const;
    bool divided(int64_t divisor, Form& out) const;
    bool remainder(int64_t divisor, Form& out) const;
    bool at_most(int64_t bound, Form& out) const;
    bool at_least(int64_t bound, Form& out) const;
    bool below(int64_t bound, Region& out) const;
};

}  // namespace tilewright
