// Nodes, their evaluation, and the source lines that they remember.
#include "front_node.hpp"

#include <structmember.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "front_arithmetic.hpp"
#include "front_spare.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

PyTypeObject* node_type = nullptr;
uint64_t num_walks = 0;  // over nodes, each of which is visited once

// --- source lines

bool is_language_code(PyObject* code) {
    static std::unordered_map<PyObject*, bool> known;  // keeps each code, so that none is reused
    const auto found = known.find(code);
    if (found != known.end()) return found->second;
    const Ref file = checked(PyObject_GetAttrString(code, "co_filename"));
    bool is_own = false;
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(language.rooms); ++place) {
        PyObject* room = PyTuple_GET_ITEM(language.rooms, place);
        is_own |= PyUnicode_Tailmatch(file.ptr(), room, 0, PyUnicode_GET_LENGTH(room), -1) == 1;
    }
    known.emplace(counted(code), is_own);
    return is_own;
}

Ref code_of(PyFrameObject* frame) {
    return steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
}

// --- life of nodes

int traverse_node(PyObject* self, visitproc visit, void* arg) {
    NodeObject* node = as_node(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(node->run);
    for (PyObject* input : node->few) Py_VISIT(input);
    Py_VISIT(node->many);
    Py_VISIT(node->value);
    return 0;
}

void drop_inputs(NodeObject& node) {
    node.num_inputs = 0;
    for (PyObject*& input : node.few) Py_CLEAR(input);
    Py_CLEAR(node.many);
}

int clear_node(PyObject* self) {
    NodeObject* node = as_node(self);
    Py_CLEAR(node->run);
    drop_inputs(*node);
    Py_CLEAR(node->value);
    Py_CLEAR(node->code);
    return 0;
}

// Chains of nodes are long: the trashcan keeps their end from nesting calls without bound.
void deallocate(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, deallocate)
    clear_node(self);
    Spares<NodeObject>::give(type, self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

PyObject* new_node(PyTypeObject*, PyObject* args, PyObject*) {
    PyObject *run, *inputs, *line;
    if (!PyArg_ParseTuple(args, "OOO", &run, &inputs, &line)) return nullptr;
    SourceLine place;
    if (line != Py_None) {
        if (!PyArg_ParseTuple(line, "Oi", &place.code, &place.instruction)) return nullptr;
    }
    try {
        const Ref all = checked(PySequence_Tuple(inputs));
        const auto count = static_cast<size_t>(PyTuple_GET_SIZE(all.ptr()));
        return make_node(run, {PySequence_Fast_ITEMS(all.ptr()), count}, place);
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
}

PyObject* node_line(PyObject* self, void*) {
    const NodeObject* node = as_node(self);
    if (node->code == nullptr) return counted(Py_None);
    return Py_BuildValue("Oi", node->code, node->instruction);
}

PyObject* node_inputs(PyObject* self, void*) {
    const std::span inputs = as_node(self)->inputs();
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(inputs.size()));
    for (size_t place = 0; tuple != nullptr && place < inputs.size(); ++place) {
        PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(place), counted(inputs[place]));
    }
    return tuple;
}

PyObject* settle_node(PyObject* self, PyObject* value) {
    settle(self, borrow(value));
    return counted(Py_None);
}

PyMemberDef members[] = {{"run", T_OBJECT_EX, offsetof(NodeObject, run), 0, nullptr},
                         {"value", T_OBJECT_EX, offsetof(NodeObject, value), 0, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef properties[] = {{"line", node_line, nullptr, nullptr, nullptr},
                            {"inputs", node_inputs, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {{"settle", settle_node, METH_O, "The value is there."},
                         {nullptr, nullptr, 0, nullptr}};

// --- evaluation

// What the function of a node raised, with the line that asked for the value.
[[noreturn]] void raise_explained(PyObject* node) {
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyErr_NormalizeException(&kind, &value, &trace);
    if (trace != nullptr) PyException_SetTraceback(value, trace);
    const bool is_plain = PyErr_GivenExceptionMatches(kind, PyExc_Exception);
    if (!is_plain) {  // an interrupt is nobody's mistake
        PyErr_Restore(kind, value, trace);
        nb::raise_python_error();
    }
    const Ref error = steal(value);
    Py_XDECREF(kind);
    Py_XDECREF(trace);
    PyObject* parts[] = {error.ptr(), node};
    const Ref told = checked(PyObject_Vectorcall(language.explained, parts, 2, nullptr));
    if (told.ptr() != error.ptr()) PyException_SetCause(told.ptr(), counted(error.ptr()));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(told.ptr())), told.ptr());
    nb::raise_python_error();
}

constexpr uint32_t kLongChain = 8192;

uint32_t depth_of(std::span<PyObject* const> inputs) {
    uint32_t depth = 0;
    for (PyObject* input : inputs) {
        if (as_node(input)->run != Py_None) depth = std::max(depth, as_node(input)->depth + 1);
    }
    return depth;
}

// Kept for its memory; what a function of a node evaluates lies above what was there before.
struct NodeStack {
    static inline thread_local std::vector<PyObject*> nodes;
    const size_t base = nodes.size();

    ~NodeStack() { nodes.resize(base); }
};

// Puts the inputs that have no value yet on the stack; whether there are any.
bool push_missing(const NodeObject& node, std::vector<PyObject*>& stack) {
    const size_t before = stack.size();
    for (PyObject* input : node.inputs()) {
        if (as_node(input)->run != Py_None) stack.push_back(input);
    }
    return stack.size() > before;
}

void run_node(PyObject* object, ArrayPool* pool) {
    NodeObject& node = *as_node(object);
    const std::span inputs = node.inputs();
    PyObject* few[NodeObject::kFew];
    std::vector<PyObject*> many(node.many == nullptr ? 0 : inputs.size());
    PyObject** values = node.many == nullptr ? few : many.data();
    for (size_t place = 0; place < inputs.size(); ++place) {
        values[place] = as_node(inputs[place])->value;
    }
    PyObject* value = nullptr;
    if (pool != nullptr) value = arithmetic(node.run, {values, inputs.size()}, *pool);
    if (value == nullptr) value = PyObject_Vectorcall(node.run, values, inputs.size(), nullptr);
    if (value == nullptr) raise_explained(object);
    settle(object, steal(value));
}

}  // namespace

SourceLine source_line() {
    PyFrameObject* innermost = PyEval_GetFrame();
    if (innermost == nullptr) return {};
    Ref frame = borrow(reinterpret_cast<PyObject*>(innermost));
    for (;;) {
        auto* current = reinterpret_cast<PyFrameObject*>(frame.ptr());
        const Ref code = code_of(current);
        PyFrameObject* back = is_language_code(code.ptr()) ? PyFrame_GetBack(current) : nullptr;
        if (back == nullptr) return {code.ptr(), PyFrame_GetLasti(current)};
        frame = steal(reinterpret_cast<PyObject*>(back));
    }
}

Ref line_tuple(PyObject* code, int instruction) {
    return code == nullptr ? nb::none() : checked(Py_BuildValue("Oi", code, instruction));
}

PyObject* make_node(PyObject* run, std::span<PyObject* const> inputs, const SourceLine& line) {
    NodeObject* node = Spares<NodeObject>::take(node_type, sizeof(NodeObject));
    if (node == nullptr) nb::raise_python_error();
    node->run = counted(run);
    node->value = counted(Py_None);
    node->code = line.code;
    Py_XINCREF(line.code);
    node->instruction = line.instruction;
    PyObject** held = node->few;
    if (inputs.size() > NodeObject::kFew) {
        node->many = PyTuple_New(static_cast<Py_ssize_t>(inputs.size()));
        if (node->many == nullptr) nb::raise_python_error();
        held = PySequence_Fast_ITEMS(node->many);
    }
    for (PyObject* input : inputs) *held++ = counted(input);
    node->num_inputs = static_cast<uint32_t>(inputs.size());
    node->depth = depth_of(inputs);
    if (node->depth % kLongChain == 0 && node->depth > 0) {
        evaluate_determined(reinterpret_cast<PyObject*>(node), nullptr);
    }
    return reinterpret_cast<PyObject*>(node);
}

void settle(PyObject* object, const Ref& value) {
    NodeObject& node = *as_node(object);
    Py_SETREF(node.value, counted(value.ptr()));
    Py_SETREF(node.run, counted(Py_None));
    drop_inputs(node);
}

PyObject* evaluate(PyObject* object, ArrayPool* pool) {
    if (as_node(object)->run == Py_None) return as_node(object)->value;
    NodeStack stack;  // of our own, since chains are long
    stack.nodes.push_back(object);
    while (stack.nodes.size() > stack.base) {
        PyObject* top = stack.nodes.back();
        if (as_node(top)->run != Py_None) {
            if (push_missing(*as_node(top), stack.nodes)) continue;
            run_node(top, pool);
        }
        stack.nodes.pop_back();
    }
    return as_node(object)->value;
}

void evaluate_determined(PyObject* object, ArrayPool* pool) {
    const uint64_t visits = ++num_walks;
    NodeStack stack;
    stack.nodes.push_back(object);
    while (stack.nodes.size() > stack.base) {
        PyObject* top = stack.nodes.back();
        NodeObject& node = *as_node(top);
        const bool is_new = node.visit != visits;
        node.visit = visits;
        bool is_ready = node.run != language.not_captured;
        for (PyObject* input : node.inputs()) {
            if (as_node(input)->run == Py_None) continue;
            is_ready = false;
            if (is_new && as_node(input)->visit != visits) stack.nodes.push_back(input);
        }
        if (stack.nodes.back() != top) continue;
        stack.nodes.pop_back();
        if (!is_ready || top == object || node.run == Py_None) continue;
        try {
            run_node(top, pool);
        } catch (nb::python_error& error) {
            if (!error.matches(PyExc_Exception)) throw;  // else it is told when somebody asks
        }
    }
}

bool is_determined(PyObject* object) {
    static std::vector<PyObject*> stack;
    const uint64_t visits = ++num_walks;
    stack.assign(1, object);
    while (!stack.empty()) {
        const NodeObject& node = *as_node(stack.back());
        stack.pop_back();
        if (node.run == language.not_captured) return false;
        for (PyObject* each : node.inputs()) {
            NodeObject& input = *as_node(each);
            if (input.run == Py_None || input.visit == visits) continue;
            input.visit = visits;
            stack.push_back(each);
        }
    }
    return true;
}

void bind_nodes(nb::module_& module) {
    PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_node)},
                           {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
                           {Py_tp_traverse, reinterpret_cast<void*>(traverse_node)},
                           {Py_tp_clear, reinterpret_cast<void*>(clear_node)},
                           {Py_tp_members, members},
                           {Py_tp_getset, properties},
                           {Py_tp_methods, methods},
                           {0, nullptr}};
    PyType_Spec spec = {"tilewright.native._core.Node", sizeof(NodeObject), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
    const Ref type = checked(PyType_FromSpec(&spec));
    node_type = reinterpret_cast<PyTypeObject*>(counted(type.ptr()));
    module.attr("Node") = type;
    module.def("evaluate", [](nb::handle node) { return borrow(evaluate(node.ptr(), nullptr)); });
    module.def("is_determined", [](nb::handle node) { return is_determined(node.ptr()); });
    module.def("source_line", [] {
        const SourceLine line = source_line();
        return line_tuple(line.code, line.instruction);
    });
}

}  // namespace tilewright
