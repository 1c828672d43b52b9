// Integers of the language that a kernel computes with before any block: language/scalar.py is the
// same in Python, and says what does not fit.
#include "front_scalar.hpp"

#include "front_value.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

constexpr int64_t kInt32Limit = int64_t{1} << 31;

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

// As in C, and so in Triton: towards zero.
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

// Python decides in its own way, and has the words if there is no result.
PyObject* defined_result(const char* op, PyObject* left, PyObject* right) {
    return PyObject_CallFunction(language.scalar_result, "sOO", op, left, right);
}

template <Exact exact>
PyObject* scalar_result(const char* op, PyObject* left, PyObject* right) {
    if (!PyLong_Check(left) || !PyLong_Check(right)) Py_RETURN_NOTIMPLEMENTED;
    int left_overflow, right_overflow;
    const long long one = PyLong_AsLongLongAndOverflow(left, &left_overflow);
    const long long other = PyLong_AsLongLongAndOverflow(right, &right_overflow);
    long long result;
    if (left_overflow != 0 || right_overflow != 0 || !exact(one, other, result)) {
        return defined_result(op, left, right);
    }
    PyTypeObject* wide = language.int64_scalar;
    const bool is_wide = Py_TYPE(left) == wide || Py_TYPE(right) == wide;
    if (!is_wide && (result < -kInt32Limit || result >= kInt32Limit)) {
        return defined_result(op, left, right);
    }
    const Ref number = steal(PyLong_FromLongLong(result));
    if (!number.is_valid()) return nullptr;
    return make_scalar(is_wide ? wide : language.int32_scalar, number.ptr());
}

PyObject* add(PyObject* left, PyObject* right) { return scalar_result<sum>("add", left, right); }
PyObject* subtract(PyObject* left, PyObject* right) {
    return scalar_result<difference>("sub", left, right);
}
PyObject* multiply(PyObject* left, PyObject* right) {
    return scalar_result<product>("mul", left, right);
}
PyObject* divide(PyObject* left, PyObject* right) {
    return scalar_result<quotient>("floordiv", left, right);
}
PyObject* modulo(PyObject* left, PyObject* right) {
    return scalar_result<remainder>("mod", left, right);
}

}  // namespace

// Not by a call of the class, since there is nothing to initialize.
PyObject* make_scalar(PyTypeObject* type, PyObject* number) {
    const Ref arguments = steal(PyTuple_Pack(1, number));
    return arguments.is_valid() ? type->tp_new(type, arguments.ptr(), nullptr) : nullptr;
}

void bind_scalars(nb::module_& module) {
    PyType_Slot slots[] = {{Py_nb_add, reinterpret_cast<void*>(add)},
                           {Py_nb_subtract, reinterpret_cast<void*>(subtract)},
                           {Py_nb_multiply, reinterpret_cast<void*>(multiply)},
                           {Py_nb_floor_divide, reinterpret_cast<void*>(divide)},
                           {Py_nb_remainder, reinterpret_cast<void*>(modulo)},
                           {0, nullptr}};
    PyType_Spec spec = {"tilewright.engine._core.IntegerFields", 0, 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    PyObject* base = reinterpret_cast<PyObject*>(&PyLong_Type);
    module.attr("IntegerFields") = checked(PyType_FromSpecWithBases(&spec, base));
}

}  // namespace tilewright
