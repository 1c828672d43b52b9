// Values that are computed when somebody needs them; language/plain.py is the same in Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "front_array.hpp"
#include "front_value.hpp"

namespace tilewright {

// A place in the user's own code: cheap to note, source.line_text reads it.
struct SourceLine {
    PyObject* code = nullptr;  // borrowed from the frame that runs it
    int instruction = 0;
};

// The innermost place that is not the language's own.
SourceLine source_line();
Ref line_tuple(PyObject* code, int instruction);

struct NodeObject {
    static constexpr size_t kFew = 3;

    PyObject_HEAD
    PyObject* run;  // None once the value is there
    PyObject* value;
    PyObject* code;  // of the source line, or nullptr
    int instruction;
    uint32_t num_inputs;
    uint32_t depth;        // of the longest chain of nodes without a value that it was made of
    uint64_t visit;        // the last walk over nodes that came by
    PyObject* few[kFew];   // the inputs, unless they are more
    PyObject* many;        // then a tuple of them, else nullptr

    std::span<PyObject* const> inputs() const {
        return {many == nullptr ? few : PySequence_Fast_ITEMS(many), num_inputs};
    }
};

inline NodeObject* as_node(PyObject* node) { return reinterpret_cast<NodeObject*>(node); }

// A new reference. An error throws.
PyObject* make_node(PyObject* run, std::span<PyObject* const> inputs, const SourceLine& line);
void settle(PyObject* node, const Ref& value);
// The value, after all that it is made of; borrowed from the node. An error throws. Some of what is
// computed on the way lies in arrays of the pool, if there is one.
PyObject* evaluate(PyObject* node, ArrayPool* pool);
// Computes what follows from bytes that have been read, of all that a node is made of.
void evaluate_determined(PyObject* node, ArrayPool* pool);
// Whether the value follows from bytes that have been read: no time has to pass for it.
bool is_determined(PyObject* node);

void bind_nodes(nanobind::module_& module);

}  // namespace tilewright
