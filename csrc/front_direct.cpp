// Functions of the library whose plain calls need no definition: accesses, and where a program is.
#include "front_call.hpp"

#include <algorithm>

#include "front_desk.hpp"
#include "front_scalar.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

constexpr Py_ssize_t kAccessArguments = 3;

// The first three arguments of a function, by place or by the names of its parameters; false: more is
// said, or not enough.
bool read_access(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names,
                 PyObject** found) {
    if (count == 0 || count > kAccessArguments) return false;
    std::copy(args, args + count, found);
    const Py_ssize_t num_names = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    PyObject* const* known = PySequence_Fast_ITEMS(as_call(self)->parameters);
    for (Py_ssize_t each = 0; each < num_names; ++each) {
        PyObject* name = PyTuple_GET_ITEM(names, each);
        const auto place = std::find(known + count, known + kAccessArguments, name) - known;
        if (place == kAccessArguments) return false;
        found[place] = args[count + each];
    }
    return found[1] != nullptr;
}

PyObject* interned(const char* name) { return PyUnicode_InternFromString(name); }

// All that is not plain is the function's own affair, refusals too.
PyObject* call_definition(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    return PyObject_Vectorcall(as_call(self)->function, args, static_cast<size_t>(count), names);
}

// Of the program whose greenlet this is; nullptr: it has none, or there is no program.
Desk* current_desk() {
    static PyObject* const program_name = interned("tilewright_program");
    const Ref greenlet = checked(PyObject_CallNoArgs(language.getcurrent));
    const Ref program = steal(PyObject_GetAttr(greenlet.ptr(), program_name));
    if (!program.is_valid()) {
        PyErr_Clear();
        return nullptr;
    }
    return Desk::of(program.ptr());
}

// An integer of 64 bits; false: it is something else.
bool read_number(PyObject* value, int64_t& number) {
    if (!PyLong_Check(value)) return false;
    int overflow;
    number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0;
}

}  // namespace

PyObject* call_load(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject* found[] = {nullptr, Py_None, Py_None};
    Ref block;
    try {
        if (read_access(self, args, count, names, found) &&
            known_load(found[0], found[1], found[2], block) == Outcome::kIssued) {
            return block.release().ptr();
        }
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
    return call_definition(self, args, count, names);
}

PyObject* call_store(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject* found[] = {nullptr, nullptr, Py_None};
    try {
        if (read_access(self, args, count, names, found) &&
            known_store(found[0], found[1], found[2]) == Outcome::kIssued) {
            return counted(Py_None);
        }
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
    return call_definition(self, args, count, names);
}

PyObject* call_program_id(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
    PyObject* const axis_name = PyTuple_GET_ITEM(as_call(self)->parameters, 0);
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    const bool is_named = count == 0 && names != nullptr && PyTuple_GET_SIZE(names) == 1 &&
                          PyTuple_GET_ITEM(names, 0) == axis_name;
    int64_t axis;
    try {
        if ((is_named || (count == 1 && names == nullptr)) && read_number(args[0], axis)) {
            const Desk* desk = current_desk();
            PyObject* id = desk == nullptr ? nullptr : desk->id(axis);
            if (id != nullptr) return make_scalar(language.int32_scalar, id);
        }
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
    return call_definition(self, args, count, names);
}

PyObject* call_arange(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    int64_t start, end;
    try {
        const bool is_plain = count == 2 && names == nullptr && read_number(args[0], start) &&
                              read_number(args[1], end) && start < end;
        const Desk* desk = is_plain ? current_desk() : nullptr;
        if (desk != nullptr) return index_range(desk->program(), start, end);
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
    return call_definition(self, args, count, names);
}

}  // namespace tilewright
