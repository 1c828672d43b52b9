// Affine integers and boxes of places.
#include "front_form.hpp"

namespace tilewright {

namespace {

// The quotient rounded down, of a positive divisor.
int64_t floor_quotient(int64_t value, int64_t divisor) {
    const int64_t quotient = value / divisor;
    return quotient - (value % divisor < 0 ? 1 : 0);
}

bool add(int64_t left, int64_t right, int64_t& out) {
    return !__builtin_add_overflow(left, right, &out);
}

bool multiply(int64_t left, int64_t right, int64_t& out) {
    return !__builtin_mul_overflow(left, right, &out);
}

bool widen(const Shape& shape, int axis, Shape& out) {
    if (shape.rank == kMaxAxes || axis > shape.rank) return false;
    out.rank = shape.rank + 1;
    std::copy(shape.extents, shape.extents + axis, out.extents);
    out.extents[axis] = 1;
    std::copy(shape.extents + axis, shape.extents + shape.rank, out.extents + axis + 1);
    return true;
}

void insert(const int64_t* from, int rank, int axis, int64_t value, int64_t* to) {
    std::copy(from, from + axis, to);
    to[axis] = value;
    std::copy(from + axis, from + rank, to + axis + 1);
}

}  // namespace

bool broadcast_shapes(const Shape& left, const Shape& right, Shape& out) {
    const Shape& wide = left.rank >= right.rank ? left : right;
    const Shape& narrow = left.rank >= right.rank ? right : left;
    const int missing = wide.rank - narrow.rank;
    out.rank = wide.rank;
    for (int axis = 0; axis < wide.rank; ++axis) {
        const int64_t one = wide.extents[axis];
        const int64_t other = axis < missing ? 1 : narrow.extents[axis - missing];
        if (one != other && one != 1 && other != 1) return false;
        out.extents[axis] = std::max(one, other);
    }
    return true;
}

// --- boxes

Region Region::whole(const Shape& shape) {
    Region region;
    region.shape = shape;
    std::fill_n(region.low, shape.rank, 0);
    std::copy_n(shape.extents, shape.rank, region.high);
    return region;
}

Region Region::empty(const Shape& shape) {
    Region region = whole(shape);
    std::fill_n(region.high, shape.rank, 0);
    return region;
}

Region Region::slab(const Shape& shape, int axis, int64_t low, int64_t high) {
    Region region = whole(shape);
    region.low[axis] = std::max<int64_t>(0, low);
    region.high[axis] = std::min(shape.extents[axis], high);
    return region;
}

bool Region::operator==(const Region& other) const {
    return shape == other.shape && std::equal(low, low + shape.rank, other.low) &&
           std::equal(high, high + shape.rank, other.high);
}

bool Region::is_whole() const {
    for (int axis = 0; axis < shape.rank; ++axis) {
        if (low[axis] != 0 || high[axis] != shape.extents[axis]) return false;
    }
    return true;
}

bool Region::is_empty() const {
    for (int axis = 0; axis < shape.rank; ++axis) {
        if (low[axis] >= high[axis]) return true;
    }
    return false;
}

Region Region::broadcast(const Shape& wide) const {
    if (wide == shape) return *this;
    Region region = whole(wide);
    const int missing = wide.rank - shape.rank;
    for (int axis = 0; axis < shape.rank; ++axis) {
        if (shape.extents[axis] == wide.extents[missing + axis]) {
            region.low[missing + axis] = low[axis];
            region.high[missing + axis] = high[axis];
        } else if (high[axis] <= low[axis]) {  // one place for all: false on the whole axis
            region.high[missing + axis] = 0;
        }
    }
    return region;
}

bool Region::expanded(int axis, Region& out) const {
    if (!widen(shape, axis, out.shape)) return false;
    insert(low, shape.rank, axis, 0, out.low);
    insert(high, shape.rank, axis, 1, out.high);
    return true;
}

bool Region::both(const Region& other, Region& out) const {
    Shape wide;
    if (!broadcast_shapes(shape, other.shape, wide)) return false;
    const Region left = broadcast(wide), right = other.broadcast(wide);
    out.shape = wide;
    for (int axis = 0; axis < wide.rank; ++axis) {
        out.low[axis] = std::max(left.low[axis], right.low[axis]);
        out.high[axis] = std::min(left.high[axis], right.high[axis]);
    }
    return true;
}

bool Region::either(const Region& other, Region& out) const {
    Shape wide;
    Region common;
    if (!broadcast_shapes(shape, other.shape, wide) || !both(other, common)) return false;
    const Region left = broadcast(wide), right = other.broadcast(wide);
    if (left.is_empty() || common == left) {
        out = right;
    } else if (right.is_empty() || common == right) {
        out = left;
    } else {
        return false;
    }
    return true;
}

bool Region::inverted(Region& out) const {
    if (is_empty()) {
        out = whole(shape);
        return true;
    }
    int cut = -1, num_cut = 0;
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
        if (low[axis] > 0 || high[axis] < shape.extents[axis]) {
            cut = axis;
            ++num_cut;
        }
    }
    if (num_cut == 0) {
        if (shape.rank == 0) return false;
        out = empty(shape);
        return true;
    }
    if (num_cut > 1 || (low[cut] > 0 && high[cut] < shape.extents[cut])) return false;
    out = low[cut] > 0 ? slab(shape, cut, 0, low[cut])
                       : slab(shape, cut, high[cut], shape.extents[cut]);
    return true;
}

// --- affine integers

Form Form::constant(int64_t value) const {
    Form form;
    form.base = value;
    form.shape = shape;
    std::fill_n(form.strides, shape.rank, 0);
    return form;
}

Form Form::broadcast(const Shape& wide) const {
    if (wide == shape) return *this;
    Form form;
    form.base = base;
    form.shape = wide;
    const int missing = wide.rank - shape.rank;
    std::fill_n(form.strides, missing, 0);
    for (int axis = 0; axis < shape.rank; ++axis) {
        form.strides[missing + axis] = shape.extents[axis] == 1 ? 0 : strides[axis];
    }
    return form;
}

bool Form::has_strides() const {
    return std::any_of(strides, strides + shape.rank, [](int64_t stride) { return stride != 0; });
}

bool Form::range(int64_t& low, int64_t& high) const {
    low = high = base;
    for (int axis = 0; axis < shape.rank; ++axis) {
        int64_t reach;
        if (!multiply(strides[axis], shape.extents[axis] - 1, reach)) return false;
        int64_t& end = reach < 0 ? low : high;
        if (!add(end, reach, end)) return false;
    }
    return true;
}

bool Form::expanded(int axis, Form& out) const {
    if (!widen(shape, axis, out.shape)) return false;
    out.base = base;
    insert(strides, shape.rank, axis, 0, out.strides);
    return true;
}

bool Form::shifted(int64_t amount, Form& out) const {
    out = *this;
    return add(base, amount, out.base);
}

bool Form::scaled(int64_t factor, Form& out) const {
    out.shape = shape;
    if (!multiply(base, factor, out.base)) return false;
    for (int axis = 0; axis < shape.rank; ++axis) {
        if (!multiply(strides[axis], factor, out.strides[axis])) return false;
    }
    return true;
}

bool Form::plus(const Form& other, Form& out) const {
    Form sum;
    if (!broadcast_shapes(shape, other.shape, sum.shape)) return false;
    if (!add(base, other.base, sum.base)) return false;
    const Form left = broadcast(sum.shape), right = other.broadcast(sum.shape);
    for (int axis = 0; axis < sum.shape.rank; ++axis) {
        if (!add(left.strides[axis], right.strides[axis], sum.strides[axis])) return false;
    }
    out = sum;
    return true;
}

bool Form::divided(int64_t divisor, Form& out) const {
    int64_t low, high;
    if (divisor <= 0 || !range(low, high) || low < 0) return false;
    if (low / divisor == high / divisor) {
        out = constant(low / divisor);
        return true;
    }
    if (base % divisor != 0) return false;
    out.shape = shape;
    out.base = base / divisor;
    for (int axis = 0; axis < shape.rank; ++axis) {
        if (strides[axis] % divisor != 0) return false;
        out.strides[axis] = strides[axis] / divisor;
    }
    return true;
}

bool Form::remainder(int64_t divisor, Form& out) const {
    int64_t low, high;
    if (divisor <= 0 || !range(low, high) || low < 0) return false;
    if (low / divisor == high / divisor) return shifted(-divisor * (low / divisor), out);
    for (int axis = 0; axis < shape.rank; ++axis) {
        if (strides[axis] % divisor != 0) return false;
    }
    out = constant(base - divisor * floor_quotient(base, divisor));
    return true;
}

bool Form::at_most(int64_t bound, Form& out) const {
    int64_t low, high;
    if (!range(low, high) || (high > bound && low < bound)) return false;
    out = high <= bound ? *this : constant(bound);
    return true;
}

bool Form::at_least(int64_t bound, Form& out) const {
    int64_t low, high;
    if (!range(low, high) || (low < bound && high > bound)) return false;
    out = low >= bound ? *this : constant(bound);
    return true;
}

bool Form::below(int64_t bound, Region& out) const {
    int64_t low, high, ahead;
    if (!range(low, high)) return false;
    if (high < bound) {
        out = Region::whole(shape);
        return true;
    }
    if (low >= bound) {
        if (shape.rank == 0) return false;
        out = Region::empty(shape);
        return true;
    }
    int decides = -1;
    for (int axis = 0; axis < shape.rank; ++axis) {
        if (strides[axis] == 0 || shape.extents[axis] == 1) continue;
        if (decides >= 0) return false;
        decides = axis;
    }
    if (decides < 0 || __builtin_sub_overflow(base, bound, &ahead)) return false;
    const int64_t stride = strides[decides];
    if (stride == INT64_MIN) return false;
    out = stride > 0
              ? Region::slab(shape, decides, 0, -floor_quotient(ahead, stride))
              : Region::slab(shape, decides, floor_quotient(ahead, -stride) + 1,
                             shape.extents[decides]);
    return true;
}

}  // namespace tilewright
