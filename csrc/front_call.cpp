// Functions of the library, and the commands that their calls are.
#include "front_call.hpp"

#include <structmember.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>

#include "front_desk.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

constexpr size_t kMaxCalls = 4096;  // a kernel that counts in Python makes ever new ones
constexpr Py_ssize_t kMaxArguments = 8;

uint64_t word_of(const void* address) { return reinterpret_cast<uint64_t>(address); }

// --- keys

// A number by its type and its bits; false if it has more than 64.
bool append_number(PyObject* value, CallKey& key) {
    int overflow = 0;
    const uint64_t bits =
        PyFloat_Check(value)
            ? std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(value))
            : static_cast<uint64_t>(PyLong_AsLongLongAndOverflow(value, &overflow));
    key.insert(key.end(), {word_of(Py_TYPE(value)), bits});
    return overflow == 0;
}

// A block by its type; numbers, tuples of them, dtypes and None by their value. False: not here.
bool append_argument(PyObject* value, CallKey& key) {
    if (is_block(value)) {
        key.push_back(word_of(as_block(value)->type));
        return true;
    }
    if (PyLong_Check(value) || PyFloat_CheckExact(value)) return append_number(value, key);
    if (PyTuple_CheckExact(value)) {
        const Py_ssize_t size = PyTuple_GET_SIZE(value);
        key.insert(key.end(), {word_of(&PyTuple_Type), static_cast<uint64_t>(size)});
        for (Py_ssize_t place = 0; place < size; ++place) {
            PyObject* item = PyTuple_GET_ITEM(value, place);
            if (!PyLong_Check(item) || !append_number(item, key)) return false;
        }
        return true;
    }
    key.push_back(word_of(value));
    return value == Py_None || Py_TYPE(value) == Py_TYPE(language.int64);
}

// A call as its key, and the desk of its blocks; nullptr: not here.
Desk* desk_of_call(PyObject* function, PyObject* const* args, Py_ssize_t count, PyObject* names,
                   CallKey& key) {
    const Py_ssize_t num_names = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    if (count + num_names > kMaxArguments) return nullptr;
    key.assign({word_of(function), static_cast<uint64_t>(count)});
    PyObject* desk = nullptr;
    for (Py_ssize_t place = 0; place < count + num_names; ++place) {
        PyObject* value = args[place];
        if (place >= count) key.push_back(word_of(PyTuple_GET_ITEM(names, place - count)));
        if (!append_argument(value, key)) return nullptr;
        if (!is_block(value)) continue;
        PyObject* own = as_block(value)->desk;
        if (own == nullptr || own == Py_None || (desk != nullptr && own != desk)) return nullptr;
        desk = own;
    }
    return desk == nullptr ? nullptr : nb::inst_ptr<Desk>(desk);
}

// Whether a block stands in two places: what is found of such a call does not hold for others.
bool has_twins(PyObject* const* args, Py_ssize_t count) {
    for (Py_ssize_t place = 0; place < count; ++place) {
        if (is_block(args[place]) && std::find(args, args + place, args[place]) != args + place) {
            return true;
        }
    }
    return false;
}

// --- recordings

// The place of an operand among the arguments; kConstant if it is none of them.
Py_ssize_t place_of(PyObject* operand, PyObject* const* args, Py_ssize_t count) {
    for (Py_ssize_t place = 0; place < count; ++place) {
        if (args[place] == operand) return place;
    }
    return CallOperand::kConstant;
}

KnownCall known_call(const Recording& recording, PyObject* result, PyObject* const* args,
                     Py_ssize_t count) {
    KnownCall call{};
    for (Py_ssize_t place = 0; place < count; ++place) {
        if (!is_block(args[place])) call.kept.push_back(borrow(args[place]));
    }
    if (!recording.is_plain || recording.num_commands != 1 || recording.result != result) {
        return call;
    }
    for (PyObject* operand : recording.operands) {
        const Py_ssize_t place = place_of(operand, args, count);
        const BlockObject& block = *as_block(operand);
        if (place == CallOperand::kConstant && block.number != kNoNumber) return call;
        call.operands.push_back({place, borrow(block.type), borrow(block.node)});
    }
    call.plan = recording.plan;
    return call;
}

// The function itself, which says what the call is; from now on that is known.
PyObject* call_recorded(CallObject& call, Desk& desk, PyObject* const* args, Py_ssize_t count,
                        PyObject* names, const CallKey& key) {
    Recording recording;
    desk.record(&recording);
    PyObject* result = PyObject_Vectorcall(call.function, args, static_cast<size_t>(count), names);
    desk.record(nullptr);
    const Py_ssize_t num_names = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    if (result != nullptr && desk.shelf().calls.size() < kMaxCalls) {
        desk.shelf().calls.emplace(key, known_call(recording, result, args, count + num_names));
    }
    for (PyObject* operand : recording.operands) Py_DECREF(operand);
    return result;
}

PyObject* call_known(Desk& desk, const KnownCall& call, PyObject* const* args) {
    PyObject* operands[kMaxArguments];
    Ref constants[kMaxArguments];
    for (size_t place = 0; place < call.operands.size(); ++place) {
        const CallOperand& operand = call.operands[place];
        if (operand.argument != CallOperand::kConstant) {
            operands[place] = args[operand.argument];
            continue;
        }
        constants[place] = desk.constant(operand.type.ptr(), operand.node.ptr());
        operands[place] = constants[place].ptr();
    }
    return desk.result(*call.plan, operands, call.operands.size());
}

PyObject* call_function(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
    CallObject& call = *as_call(self);
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    const Py_ssize_t num_names = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    static CallKey key;
    try {
        Desk* desk = desk_of_call(call.function, args, count, names, key);
        if (desk != nullptr && desk->is_idle()) {
            const KnownCalls& calls = desk->shelf().calls;
            const auto known = calls.find(key);
            if (known == calls.end()) {
                if (!has_twins(args, count + num_names)) {
                    return call_recorded(call, *desk, args, count, names, CallKey(key));
                }
            } else if (known->second.plan != nullptr) {
                return call_known(*desk, known->second, args);
            }
        }
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
    return PyObject_Vectorcall(call.function, args, static_cast<size_t>(count), names);
}

// --- as Python has them

vectorcallfunc call_of(const std::string& kind) {
    if (kind == "load") return call_load;
    if (kind == "store") return call_store;
    if (kind == "program_id") return call_program_id;
    return kind == "arange" ? call_arange : call_function;
}

PyObject* new_call(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject* function;
    const char* kind = "";
    if (!PyArg_ParseTuple(args, "O|s", &function, &kind)) return nullptr;
    auto* call = reinterpret_cast<CallObject*>(type->tp_alloc(type, 0));
    if (call == nullptr) return nullptr;
    call->vectorcall = call_of(kind);
    call->function = counted(function);
    if (*kind != '\0') {
        const Ref code = steal(PyObject_GetAttrString(function, "__code__"));
        call->parameters = code.is_valid() ? PyObject_GetAttrString(code.ptr(), "co_varnames") : nullptr;
        if (call->parameters == nullptr) {
            Py_DECREF(call);
            return nullptr;
        }
    }
    return reinterpret_cast<PyObject*>(call);
}

int traverse_call(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_call(self)->function);
    Py_VISIT(as_call(self)->attributes);
    Py_VISIT(as_call(self)->parameters);
    return 0;
}

int clear_call(PyObject* self) {
    Py_CLEAR(as_call(self)->function);
    Py_CLEAR(as_call(self)->attributes);
    Py_CLEAR(as_call(self)->parameters);
    return 0;
}

void deallocate_call(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear_call(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMemberDef call_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CallObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CallObject, attributes), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef call_properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

void bind_calls(nb::module_& module) {
    PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_call)},
                           {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                           {Py_tp_dealloc, reinterpret_cast<void*>(deallocate_call)},
                           {Py_tp_traverse, reinterpret_cast<void*>(traverse_call)},
                           {Py_tp_clear, reinterpret_cast<void*>(clear_call)},
                           {Py_tp_members, call_members},
                           {Py_tp_getset, call_properties},
                           {0, nullptr}};
    PyType_Spec spec = {"tilewright.native._core.PlannedCall", sizeof(CallObject), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};
    module.attr("PlannedCall") = checked(PyType_FromSpec(&spec));
}

}  // namespace tilewright
