// Operators of values: what is known is computed here, commands go to the program's desk, and the
// rest to Program, which says what it means.
#include "front_desk.hpp"
#include "front_value.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

const char* const kOpNames[] = {"add", "sub", "mul", "div", "floordiv", "mod", "and", "or",
                                "xor", "shl", "shr", "lt",  "le",       "eq",  "ne",  "gt",
                                "ge",  "minimum", "maximum", "quotient", "remainder"};

Desk* desk_of(PyObject* block) {
    PyObject* desk = as_block(block)->desk;
    return desk == nullptr || desk == Py_None ? nullptr : nb::inst_ptr<Desk>(desk);
}

// A command on blocks of one program, or on one and a number; nullptr without an error: not here.
PyObject* issued_result(Op op, PyObject* left, PyObject* right) {
    PyObject* block = is_block(left) ? left : right;
    PyObject* beside = is_block(left) ? right : left;
    if (is_index(beside) || is_pointers(beside)) return known_result(op, left, right);
    Desk* desk = desk_of(block);
    if (desk == nullptr) return nullptr;
    if (is_block(left) && is_block(right)) {
        const bool is_own = as_block(left)->program == as_block(right)->program;
        return is_own ? desk->combine(op, left, right) : nullptr;
    }
    return desk->combine_with_number(op, left, right);
}

template <Op op>
PyObject* binary(PyObject* left, PyObject* right) {
    return operate_values(op, left, right);
}

PyObject* unary(const char* op, PyObject* value) {
    return PyObject_CallMethod(as_value(value)->program, "unary", "sO", op, value);
}

PyObject* negative(PyObject* value) { return unary("neg", value); }
PyObject* invert(PyObject* value) { return unary("not", value); }

bool is_whole_slice(PyObject* part) {
    if (!PySlice_Check(part)) return false;
    auto* slice = reinterpret_cast<PySliceObject*>(part);
    return slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None;
}

// With a new axis; nullptr without an error: not here.
PyObject* expanded(PyObject* value, int axis) {
    Form form;
    if (is_index(value)) {
        const IndexObject& index = *as_index(value);
        if (!index.form.expanded(axis, form)) return nullptr;
        return make_index(index.program, form, index.is_wide);
    }
    if (is_mask(value)) {
        Region region;
        if (!as_mask(value)->region.expanded(axis, region)) return nullptr;
        return make_mask(as_mask(value)->program, region);
    }
    if (is_pointers(value)) {
        const PointersObject& pointers = *as_pointers(value);
        if (pointers.offsets != Py_None || !pointers.form.expanded(axis, form)) return nullptr;
        return make_pointers(pointers, form, Py_None);
    }
    Desk* desk = desk_of(value);
    return desk == nullptr ? nullptr : desk->expand(value, axis);
}

int rank_of(PyObject* value) {
    if (is_index(value)) return as_index(value)->form.shape.rank;
    if (is_mask(value)) return as_mask(value)->region.shape.rank;
    if (is_pointers(value)) return as_pointers(value)->form.shape.rank;
    const Ref shape = checked(PyObject_GetAttrString(as_block(value)->type, "shape"));
    return static_cast<int>(PyTuple_Size(shape.ptr()));
}

// New axes and whole slices, as in x[:, None]; nullptr without an error: not here.
PyObject* with_new_axes(PyObject* value, PyObject* key) {
    if (!PyTuple_Check(key)) return nullptr;
    int rank = 0;
    for (Py_ssize_t axis = 0; axis < PyTuple_GET_SIZE(key); ++axis) {
        PyObject* part = PyTuple_GET_ITEM(key, axis);
        if (part != Py_None && !is_whole_slice(part)) return nullptr;
        rank += part != Py_None;
    }
    if (rank > rank_of(value)) return nullptr;
    Ref result = borrow(value);
    for (Py_ssize_t axis = 0; axis < PyTuple_GET_SIZE(key); ++axis) {
        if (PyTuple_GET_ITEM(key, axis) != Py_None) continue;
        PyObject* wider = expanded(result.ptr(), static_cast<int>(axis));
        if (wider == nullptr) return nullptr;
        result = steal(wider);
    }
    return result.release().ptr();
}

}  // namespace

PyObject* operate_values(Op op, PyObject* left, PyObject* right) {
    try {
        const bool has_block = is_block(left) || is_block(right);
        PyObject* result =
            has_block ? issued_result(op, left, right) : known_result(op, left, right);
        if (result != nullptr || PyErr_Occurred()) return result;
        PyObject* name = op_name(op);
        PyObject* program = as_value(is_value(left) ? left : right)->program;
        static PyObject* binary = PyUnicode_InternFromString("binary");
        return PyObject_CallMethodObjArgs(program, binary, name, left, right, nullptr);
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
}

PyObject* op_name(Op op) {
    static PyObject* names[static_cast<int>(Op::kCount)];
    PyObject*& name = names[static_cast<int>(op)];
    if (name == nullptr) name = PyUnicode_InternFromString(kOpNames[static_cast<int>(op)]);
    return name;
}

PyNumberMethods make_operators() {
    PyNumberMethods operators{};
    operators.nb_add = binary<Op::kAdd>;
    operators.nb_subtract = binary<Op::kSub>;
    operators.nb_multiply = binary<Op::kMul>;
    operators.nb_true_divide = binary<Op::kDiv>;
    operators.nb_floor_divide = binary<Op::kFloorDiv>;
    operators.nb_remainder = binary<Op::kMod>;
    operators.nb_and = binary<Op::kAnd>;
    operators.nb_or = binary<Op::kOr>;
    operators.nb_xor = binary<Op::kXor>;
    operators.nb_lshift = binary<Op::kShl>;
    operators.nb_rshift = binary<Op::kShr>;
    operators.nb_negative = negative;
    operators.nb_invert = invert;
    return operators;
}

PyObject* compare_values(PyObject* left, PyObject* right, int op) {
    return operate_values(static_cast<Op>(static_cast<int>(Op::kLt) + op), left, right);
}

PyObject* subscript_value(PyObject* value, PyObject* key) {
    try {
        PyObject* result = with_new_axes(value, key);
        if (result != nullptr || PyErr_Occurred()) return result;
        return PyObject_CallMethod(as_value(value)->program, "subscript", "OO", value, key);
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
}

}  // namespace tilewright
