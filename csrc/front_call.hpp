// Calls of the language that come again: what a function of the library made of its arguments once in
// a run is made of the like of them without a frame of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "front_value.hpp"

namespace tilewright {

struct PlanView;

// What tells calls apart: the function, its blocks by their types, all else by its value.
using CallKey = std::vector<uint64_t>;

struct CallKeyHash {
    size_t operator()(const CallKey& key) const {
        uint64_t hash = 14695981039346656037u;
        for (const uint64_t word : key) hash = (hash ^ word) * 1099511628211u;
        return static_cast<size_t>(hash ^ (hash >> 32));
    }
};

// An operand of the command that a call is: one of the call's arguments, or a number.
struct CallOperand {
    Py_ssize_t argument;  // or kConstant
    Ref type, node;       // of a constant

    static constexpr Py_ssize_t kConstant = -1;
};

struct KnownCall {
    const PlanView* plan;  // nullptr: the call is more than one command, or less
    std::vector<CallOperand> operands;
    std::vector<Ref> kept;  // what the key tells by address
};

using KnownCalls = std::unordered_map<CallKey, KnownCall, CallKeyHash>;

// What a desk was asked for while a function of the library ran.
struct Recording {
    const PlanView* plan = nullptr;
    std::vector<PyObject*> operands;  // alive while the recording is
    PyObject* result = nullptr;
    int num_commands = 0;  // and views
    bool is_plain = true;  // nothing but computes
};

// A function of the library, by its definition in Python and by who does what it can without.
struct CallObject {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject* function;
    PyObject* attributes;  // name, words and the like
    PyObject* parameters;  // of the function, by name, if compiled code reads the arguments
};

inline CallObject* as_call(PyObject* call) { return reinterpret_cast<CallObject*>(call); }

PyObject* call_load(PyObject* self, PyObject* const* args, size_t flags, PyObject* names);
PyObject* call_store(PyObject* self, PyObject* const* args, size_t flags, PyObject* names);
PyObject* call_program_id(PyObject* self, PyObject* const* args, size_t flags, PyObject* names);
PyObject* call_arange(PyObject* self, PyObject* const* args, size_t flags, PyObject* names);

void bind_calls(nanobind::module_& module);

}  // namespace tilewright
