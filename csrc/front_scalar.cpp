// Integers of the language that a kernel computes with before any block: language/scalar.py is the
// same in Python, and says what does not fit.
#include "front_scalar.hpp"

#include "front_value.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

using Exact = bool (*)(long long, long long, long long&);  // false: beyond 64 bits, or no result

bool sum(long long left, long long right, long long& out) {
    return !__builtin_add_overflow(left, right, &out);
}

bool difference(long long left, long long right, long long& out) {
    return !__builtin_sub_overflow(left, right, &out);
}

bool product(long long left, long long right, long long& out) {
    return !__builtin_mul_overflow(left, right, &out);
}

// Python's: towards minus infinity, and a remainder with the sign of the divisor.
bool floored(long long left, long long right, long long& out) {
    if (right == 0 || (left == INT64_MIN && right == -1)) return false;
    out = left / right - ((left % right != 0 && (left < 0) != (right < 0)) ? 1 : 0);
    return true;
}

bool modulus(long long left, long long right, long long& out) {
    if (right == 0 || right == -1) return false;
    const long long rest = left % right;
    out = rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
    return true;
}

// C's, and so Triton's: towards zero.
bool quotient(long long left, long long right, long long& out) {
    if (right == 0 || (left == INT64_MIN && right == -1)) return false;
    out = left / right;
    return true;
}

bool remainder(long long left, long long right, long long& out) {
    if (right == 0 || right == -1) return false;
    out = left % right;
    return true;
}

bool bits_and(long long left, long long right, long long& out) {
    out = left & right;
    return true;
}

bool bits_or(long long left, long long right, long long& out) {
    out = left | right;
    return true;
}

bool bits_xor(long long left, long long right, long long& out) {
    out = left ^ right;
    return true;
}

constexpr int kMaxShift = 31;  // of any width; Python knows what a longer one gives

bool left_shift(long long left, long long right, long long& out) {
    if (right < 0 || right > kMaxShift) return false;
    return !__builtin_mul_overflow(left, 1LL << right, &out);
}

bool right_shift(long long left, long long right, long long& out) {
    if (right < 0 || right > kMaxShift) return false;
    out = left >> right;
    return true;
}

// Python decides in its own way, and has the words if there is no result.
PyObject* defined_result(const char* op, PyObject* left, PyObject* right) {
    return PyObject_CallFunction(language.scalar_result, "sOO", op, left, right);
}

// Whether a number is weak, or has one of the dtypes that are computed here.
bool is_plain(PyObject* number) {
    PyTypeObject* type = Py_TYPE(number);
    return type == language.int32_scalar || type == language.int64_scalar || type == &PyLong_Type ||
           type == &PyBool_Type;
}

template <Exact exact>
PyObject* scalar_result(const char* op, PyObject* left, PyObject* right) {
    if (!is_number(left) || !is_number(right)) Py_RETURN_NOTIMPLEMENTED;
    if (!is_plain(left) || !is_plain(right)) return defined_result(op, left, right);
    int left_overflow, right_overflow;
    const long long one = PyLong_AsLongLongAndOverflow(left, &left_overflow);
    const long long other = PyLong_AsLongLongAndOverflow(right, &right_overflow);
    long long result;
    if (left_overflow != 0 || right_overflow != 0 || !exact(one, other, result)) {
        return defined_result(op, left, right);
    }
    PyTypeObject* wide = language.int64_scalar;
    const bool is_wide = Py_TYPE(left) == wide || Py_TYPE(right) == wide;
    const auto fits = [](long long number) {
        return number >= -kInt32Limit && number < kInt32Limit;
    };
    if (!is_wide && !(fits(result) && fits(one) && fits(other))) {
        return defined_result(op, left, right);
    }
    const Ref number = steal(PyLong_FromLongLong(result));
    if (!number.is_valid()) return nullptr;
    return make_scalar(is_wide ? wide : language.int32_scalar, number.ptr());
}

template <Exact exact, const char* op>
PyObject* operate(PyObject* left, PyObject* right) {
    return scalar_result<exact>(op, left, right);
}

constexpr char kAddName[] = "add", kSubName[] = "sub", kMulName[] = "mul";
constexpr char kFloorDivName[] = "floordiv", kModName[] = "mod";
constexpr char kAndName[] = "and", kOrName[] = "or", kXorName[] = "xor";
constexpr char kShlName[] = "shl", kShrName[] = "shr";

// Beside a weak float an integer is a float32, as in arithmetic.
PyObject* compare(PyObject* left, PyObject* right, int op) {
    if (!PyFloat_CheckExact(right)) return PyLong_Type.tp_richcompare(left, right, op);
    const Ref number = steal(PyObject_CallFunction(language.scalar_result, "sOi", "div", left, 1));
    return number.is_valid() ? PyObject_RichCompare(number.ptr(), right, op) : nullptr;
}

bool is_weak(PyObject* value) { return PyLong_CheckExact(value) || PyFloat_CheckExact(value); }

// Of Triton kernels: what // and % are there. Two weak numbers are divided as Python does.
template <Exact exact, Op op>
PyObject* divide(PyObject*, PyObject* const* values, Py_ssize_t count) {
    if (count != 2) return PyErr_Format(PyExc_TypeError, "two operands, not %zd", count);
    PyObject *left = values[0], *right = values[1];
    if (is_value(left) || is_value(right)) return operate_values(op, left, right);
    const bool is_weak_pair = is_weak(left) && is_weak(right);
    if (!is_weak_pair && is_number(left) && is_number(right)) {
        return scalar_result<exact>(op == Op::kQuotient ? "quotient" : "remainder", left, right);
    }
    return op == Op::kQuotient ? PyNumber_FloorDivide(left, right)
                               : PyNumber_Remainder(left, right);
}

// Of Triton kernels: an operator whose left operand may be a weak float, which Python would ask first.
template <PyObject* (*plain)(PyObject*, PyObject*), const char* op>
PyObject* combine(PyObject*, PyObject* const* values, Py_ssize_t count) {
    if (count != 2) return PyErr_Format(PyExc_TypeError, "two operands, not %zd", count);
    PyObject *left = values[0], *right = values[1];
    const bool is_scalar = PyLong_Check(right) && !PyLong_CheckExact(right) && !PyBool_Check(right);
    return PyFloat_CheckExact(left) && is_scalar ? defined_result(op, left, right)
                                                 : plain(left, right);
}

constexpr char kDivName[] = "div";

// Of Triton kernels: a comparison that is computed with. Of scalars it has a dtype, int1.
template <int op>
PyObject* compare_values_of(PyObject*, PyObject* const* values, Py_ssize_t count) {
    if (count != 2) return PyErr_Format(PyExc_TypeError, "two operands, not %zd", count);
    PyObject* found = PyObject_RichCompare(values[0], values[1], op);
    if (found != Py_True && found != Py_False) return found;
    const auto is_scalar = [](PyObject* value) {
        return is_number(value) && !is_weak(value) && !PyBool_Check(value);
    };
    if (!is_scalar(values[0]) && !is_scalar(values[1])) return found;
    const Ref truth = steal(found);
    return PyObject_CallOneArg(language.strong_number, truth.ptr());
}

// Of Triton kernels: what is assigned. A number gets a dtype, all else stays what it is.
PyObject* strong_number(PyObject*, PyObject* value) {
    if (PyLong_CheckExact(value)) {
        int overflow;
        const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow == 0 && number >= -kInt32Limit && number < kInt32Limit) {
            return make_scalar(language.int32_scalar, value);
        }
    } else if (!PyBool_Check(value) && !PyFloat_CheckExact(value) && !PyTuple_Check(value) &&
               !PyList_CheckExact(value)) {
        return counted(value);
    }
    return PyObject_CallOneArg(language.strong_number, value);
}

PyMethodDef functions[] = {
    {"quotient", reinterpret_cast<PyCFunction>(divide<quotient, Op::kQuotient>), METH_FASTCALL,
     nullptr},
    {"remainder", reinterpret_cast<PyCFunction>(divide<remainder, Op::kRemainder>), METH_FASTCALL,
     nullptr},
    {"weak_add", reinterpret_cast<PyCFunction>(combine<PyNumber_Add, kAddName>), METH_FASTCALL,
     nullptr},
    {"weak_sub", reinterpret_cast<PyCFunction>(combine<PyNumber_Subtract, kSubName>),
     METH_FASTCALL, nullptr},
    {"weak_mul", reinterpret_cast<PyCFunction>(combine<PyNumber_Multiply, kMulName>),
     METH_FASTCALL, nullptr},
    {"weak_div", reinterpret_cast<PyCFunction>(combine<PyNumber_TrueDivide, kDivName>),
     METH_FASTCALL, nullptr},
    {"compare_lt", reinterpret_cast<PyCFunction>(compare_values_of<Py_LT>), METH_FASTCALL,
     nullptr},
    {"compare_le", reinterpret_cast<PyCFunction>(compare_values_of<Py_LE>), METH_FASTCALL,
     nullptr},
    {"compare_gt", reinterpret_cast<PyCFunction>(compare_values_of<Py_GT>), METH_FASTCALL,
     nullptr},
    {"compare_ge", reinterpret_cast<PyCFunction>(compare_values_of<Py_GE>), METH_FASTCALL,
     nullptr},
    {"compare_eq", reinterpret_cast<PyCFunction>(compare_values_of<Py_EQ>), METH_FASTCALL,
     nullptr},
    {"compare_ne", reinterpret_cast<PyCFunction>(compare_values_of<Py_NE>), METH_FASTCALL,
     nullptr},
    {"strong_number", strong_number, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

// Not by a call of the class, since there is nothing to initialize.
PyObject* make_scalar(PyTypeObject* type, PyObject* number) {
    const Ref arguments = steal(PyTuple_Pack(1, number));
    return arguments.is_valid() ? type->tp_new(type, arguments.ptr(), nullptr) : nullptr;
}

void bind_scalars(nb::module_& module) {
    const auto slot = [](auto* function) { return reinterpret_cast<void*>(function); };
    PyType_Slot slots[] = {{Py_nb_add, slot(operate<sum, kAddName>)},
                           {Py_nb_subtract, slot(operate<difference, kSubName>)},
                           {Py_nb_multiply, slot(operate<product, kMulName>)},
                           {Py_nb_floor_divide, slot(operate<floored, kFloorDivName>)},
                           {Py_nb_remainder, slot(operate<modulus, kModName>)},
                           {Py_nb_and, slot(operate<bits_and, kAndName>)},
                           {Py_nb_or, slot(operate<bits_or, kOrName>)},
                           {Py_nb_xor, slot(operate<bits_xor, kXorName>)},
                           {Py_nb_lshift, slot(operate<left_shift, kShlName>)},
                           {Py_nb_rshift, slot(operate<right_shift, kShrName>)},
                           {Py_tp_richcompare, slot(compare)},
                           {Py_tp_hash, slot(PyLong_Type.tp_hash)},
                           {0, nullptr}};
    PyType_Spec spec = {"tilewright.native._core.IntegerFields", 0, 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    PyObject* base = reinterpret_cast<PyObject*>(&PyLong_Type);
    module.attr("IntegerFields") = checked(PyType_FromSpecWithBases(&spec, base));
    for (PyMethodDef* each = functions; each->ml_name != nullptr; ++each) {
        module.attr(each->ml_name) = checked(PyCFunction_New(each, nullptr));
    }
}

}  // namespace tilewright
