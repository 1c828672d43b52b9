// Values that are computed when somebody needs them; language/node.py is the same in Python.
#pragma once

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
    PyObject_HEAD
    PyObject* run;     // None once the value is there
    PyObject* inputs;  // a tuple or list of nodes
    PyObject* value;
    PyObject* code;  // of the source line, or nullptr
    int instruction;
    uint64_t visit;  // the last one of is_determined that came by
};

inline NodeObject* as_node(PyObject* node) { return reinterpret_cast<NodeObject*>(node); }

// A new reference; steals the one to inputs. An error throws.
PyObject* make_node(PyObject* run, PyObject* inputs, const SourceLine& line);
void settle(PyObject* node, const Ref& value);
// The value, after all that it is made of; borrowed from the node. An error throws.
PyObject* evaluate(PyObject* node);
// Whether the value follows from bytes that have been read: no time has to pass for it.
bool is_determined(PyObject* node);

void bind_nodes(nanobind::module_& module);

}  // namespace tilewright
