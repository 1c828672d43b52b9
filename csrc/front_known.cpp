// Arithmetic on indices, masks, addresses and numbers; language/known.py is the same in Python.
#include "front_desk.hpp"
#include "front_layout.hpp"
#include "front_node.hpp"
#include "front_value.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

constexpr int64_t kInt32Bytes = 4;

// An operand that no command has computed; of an index its form, of a number itself.
struct Integer {
    bool is_index = false;
    bool is_wide = false;  // of 64 bits by its own dtype
    int64_t number = 0;
    const IndexObject* index = nullptr;
};

// One signed integer that a command has computed and that is known without waiting.
bool read_block(PyObject* value, Integer& out) {
    const BlockObject& block = *as_block(value);
    const TypeView& type = type_view(block.type);
    if (type.shape.rank > 0 || !type.is_signed || type.is_extension) return false;
    if (!block.is_there) {
        const bool has_desk = block.desk != nullptr && block.desk != Py_None;
        if (!has_desk || !nb::inst_ptr<Desk>(block.desk)->is_there(value)) return false;
    }
    const Ref number = checked(PyNumber_Index(as_node(block.node)->value));
    out.number = PyLong_AsLongLong(number.ptr());
    out.is_wide = type.item_bytes > kInt32Bytes;
    return true;
}

bool read_integer(PyObject* value, Integer& out) {
    if (is_block(value)) return read_block(value, out);
    if (is_index(value)) {
        out.is_index = true;
        out.index = as_index(value);
        out.is_wide = out.index->is_wide;
        return true;
    }
    PyTypeObject* type = Py_TYPE(value);  // an unsigned one promotes an index: Python's to say
    out.is_wide = type == language.int64_scalar;
    if (!out.is_wide && type != language.int32_scalar && type != &PyLong_Type) return false;
    int overflow;
    out.number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0;
}

PyObject* program_of(const Integer& left, const Integer& right) {
    return left.is_index ? left.index->program : right.index->program;
}

// An index in the dtype of both, unless it would wrap.
PyObject* index_of(const Integer& left, const Integer& right, const Form& form) {
    int64_t low, high;
    if (!form.range(low, high)) return nullptr;
    const bool is_wide = left.is_wide || right.is_wide;
    if (!is_wide && (low < -kInt32Limit || high >= kInt32Limit)) return nullptr;
    return make_index(program_of(left, right), form, is_wide);
}

bool product(const Integer& left, const Integer& right, Form& out) {
    if (!left.is_index) return right.index->form.scaled(left.number, out);
    if (!right.is_index) return left.index->form.scaled(right.number, out);
    const Form *one = &left.index->form, *other = &right.index->form;
    if (one->has_strides()) std::swap(one, other);
    Form scaled;
    return !one->has_strides() && other->scaled(one->base, scaled) &&
           scaled.plus(one->constant(0), out);
}

bool difference(const Integer& left, const Integer& right, Form& out) {
    Form negative;
    if (!right.is_index) {
        return right.number != INT64_MIN && left.index->form.shifted(-right.number, out);
    }
    if (!right.index->form.scaled(-1, negative)) return false;
    if (!left.is_index) return negative.shifted(left.number, out);
    return left.index->form.plus(negative, out);
}

bool sum(const Integer& left, const Integer& right, Form& out) {
    if (!left.is_index) return right.index->form.shifted(left.number, out);
    if (!right.is_index) return left.index->form.shifted(right.number, out);
    return left.index->form.plus(right.index->form, out);
}

using Rule = bool (Form::*)(int64_t, Form&) const;

bool with_number(Rule rule, const Integer& left, const Integer& right, Form& out) {
    return left.is_index && !right.is_index && (left.index->form.*rule)(right.number, out);
}

bool symmetric(Rule rule, const Integer& left, const Integer& right, Form& out) {
    return right.is_index ? with_number(rule, right, left, out)
                          : with_number(rule, left, right, out);
}

// Where left - right < offset.
bool less(const Integer& left, const Integer& right, int64_t offset, Region& out) {
    Form ahead;
    return difference(left, right, ahead) && ahead.below(offset, out);
}

bool compared(Op op, const Integer& left, const Integer& right, Region& out) {
    Region above, equal;
    switch (op) {
        case Op::kLt: return less(left, right, 0, out);
        case Op::kLe: return less(left, right, 1, out);
        case Op::kGt: return less(right, left, 0, out);
        case Op::kGe: return less(right, left, 1, out);
        case Op::kEq:
            return less(left, right, 1, out) && less(right, left, 1, above) &&
                   Region(out).both(above, out);
        case Op::kNe: return compared(Op::kEq, left, right, equal) && equal.inverted(out);
        default: return false;
    }
}

bool computed(Op op, const Integer& left, const Integer& right, Form& out) {
    switch (op) {
        case Op::kAdd: return sum(left, right, out);
        case Op::kSub: return difference(left, right, out);
        case Op::kMul: return product(left, right, out);
        case Op::kFloorDiv:
        case Op::kQuotient: return with_number(&Form::divided, left, right, out);
        case Op::kMod:
        case Op::kRemainder: return with_number(&Form::remainder, left, right, out);
        case Op::kMinimum: return symmetric(&Form::at_most, left, right, out);
        case Op::kMaximum: return symmetric(&Form::at_least, left, right, out);
        default: return false;
    }
}

PyObject* known_index(Op op, PyObject* left_value, PyObject* right_value) {
    Integer left, right;
    if (!read_integer(left_value, left) || !read_integer(right_value, right)) return nullptr;
    if (op >= Op::kLt && op <= Op::kGe) {
        Region region;
        if (!compared(op, left, right, region)) return nullptr;
        return make_mask(program_of(left, right), region);
    }
    Form form;
    return computed(op, left, right, form) ? index_of(left, right, form) : nullptr;
}

PyObject* known_mask(Op op, PyObject* left, PyObject* right) {
    if (!is_mask(left) || !is_mask(right)) return nullptr;
    Region region;
    const Region &one = as_mask(left)->region, &other = as_mask(right)->region;
    const bool is_known = op == Op::kAnd || op == Op::kMul ? one.both(other, region)
                          : op == Op::kOr                  ? one.either(other, region)
                                                           : false;
    return is_known ? make_mask(as_mask(left)->program, region) : nullptr;
}

// Addresses plus a block of offsets that is computed.
PyObject* offset_pointers(const PointersObject& pointers, PyObject* block) {
    const TypeView& type = type_view(as_block(block)->type);
    if (pointers.offsets != Py_None || type.is_floating || type.shape.rank == 0) return nullptr;
    Form nowhere, spread;
    nowhere.shape = type.shape;
    const bool fits = pointers.form.plus(nowhere.constant(0), spread);
    return fits ? make_pointers(pointers, spread, block) : nullptr;
}

PyObject* known_pointers(Op op, PyObject* left, PyObject* right) {
    if (op == Op::kAdd && is_pointers(right)) std::swap(left, right);
    if (op != Op::kAdd && op != Op::kSub) return nullptr;
    if (!is_pointers(left)) return nullptr;
    Integer offset;
    if (!read_integer(right, offset)) {
        const bool is_offset = op == Op::kAdd && is_block(right);
        return is_offset ? offset_pointers(*as_pointers(left), right) : nullptr;
    }
    const PointersObject& pointers = *as_pointers(left);
    const int64_t step = op == Op::kAdd ? pointers.step : -pointers.step;
    Form moved;
    if (offset.is_index) {
        Form scaled;
        const bool is_known =
            offset.index->form.scaled(step, scaled) && pointers.form.plus(scaled, moved);
        return is_known ? make_pointers(pointers, moved, pointers.offsets) : nullptr;
    }
    int64_t amount;
    if (__builtin_mul_overflow(offset.number, step, &amount)) return nullptr;
    const bool is_known = pointers.form.shifted(amount, moved);
    return is_known ? make_pointers(pointers, moved, pointers.offsets) : nullptr;
}

}  // namespace

PyObject* known_result(Op op, PyObject* left, PyObject* right) {
    if (is_pointers(left) || is_pointers(right)) return known_pointers(op, left, right);
    if (is_mask(left) || is_mask(right)) return known_mask(op, left, right);
    return known_index(op, left, right);
}

}  // namespace tilewright
