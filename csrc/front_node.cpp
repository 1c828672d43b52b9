// Nodes, their evaluation, and the source lines that they remember.
#include "front_node.hpp"

#include <structmember.h>

#include <unordered_map>
#include <vector>

#include "front_spare.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

PyTypeObject* node_type = nullptr;

// --- source lines

bool is_language_code(PyObject* code) {
    static std::unordered_map<PyObject*, bool> known;  // keeps each code, so that none is reused
    const auto found = known.find(code);
    if (found != known.end()) return found->second;
    const Ref file = checked(PyObject_GetAttrString(code, "co_filename"));
    const Py_ssize_t length = PyUnicode_GET_LENGTH(language.room);
    const bool is_own = PyUnicode_Tailmatch(file.ptr(), language.room, 0, length, -1) == 1;
    known.emplace(counted(code), is_own);
    return is_own;
}

Ref code_of(PyFrameObject* frame) {
    return steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
}

// --- life of nodes

int traverse(PyObject* self, visitproc visit, void* arg) {
    NodeObject* node = as_node(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(node->run);
    Py_VISIT(node->inputs);
    Py_VISIT(node->value);
    return 0;
}

int clear(PyObject* self) {
    NodeObject* node = as_node(self);
    Py_CLEAR(node->run);
    Py_CLEAR(node->inputs);
    Py_CLEAR(node->value);
    Py_CLEAR(node->code);
    return 0;
}

// Chains of nodes are long: the trashcan keeps their end from nesting calls without bound.
void deallocate(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, deallocate)
    clear(self);
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
        return make_node(run, counted(inputs), place);
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

PyObject* settle_node(PyObject* self, PyObject* value) {
    settle(self, borrow(value));
    return counted(Py_None);
}

PyMemberDef members[] = {{"run", T_OBJECT_EX, offsetof(NodeObject, run), 0, nullptr},
                         {"inputs", T_OBJECT_EX, offsetof(NodeObject, inputs), 0, nullptr},
                         {"value", T_OBJECT_EX, offsetof(NodeObject, value), 0, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef properties[] = {{"line", node_line, nullptr, nullptr, nullptr},
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

// Kept for its memory; what a function of a node evaluates lies above what was there before.
struct NodeStack {
    static inline thread_local std::vector<PyObject*> nodes;
    const size_t base = nodes.size();

    ~NodeStack() { nodes.resize(base); }
};

// Puts the inputs that have no value yet on the stack; whether there are any.
bool push_missing(const NodeObject& node, std::vector<PyObject*>& stack) {
    const size_t before = stack.size();
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(node.inputs);
    PyObject** inputs = PySequence_Fast_ITEMS(node.inputs);
    for (Py_ssize_t place = 0; place < count; ++place) {
        if (as_node(inputs[place])->run != Py_None) stack.push_back(inputs[place]);
    }
    return stack.size() > before;
}

void run_node(PyObject* object) {
    NodeObject& node = *as_node(object);
    constexpr Py_ssize_t kFew = 8;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(node.inputs);
    PyObject** inputs = PySequence_Fast_ITEMS(node.inputs);
    PyObject* few[kFew];
    std::vector<PyObject*> many(count > kFew ? count : 0);
    PyObject** values = count > kFew ? many.data() : few;
    for (Py_ssize_t place = 0; place < count; ++place) values[place] = as_node(inputs[place])->value;
    PyObject* value = PyObject_Vectorcall(node.run, values, count, nullptr);
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

PyObject* make_node(PyObject* run, PyObject* inputs, const SourceLine& line) {
    Ref held = steal(inputs);
    if (!PyTuple_Check(inputs) && !PyList_Check(inputs)) {
        held = checked(PySequence_Tuple(inputs));
    }
    NodeObject* node = Spares<NodeObject>::take(node_type, sizeof(NodeObject));
    if (node == nullptr) nb::raise_python_error();
    node->run = counted(run);
    node->inputs = held.release().ptr();
    node->value = counted(Py_None);
    node->code = line.code;
    Py_XINCREF(line.code);
    node->instruction = line.instruction;
    return reinterpret_cast<PyObject*>(node);
}

void settle(PyObject* object, const Ref& value) {
    NodeObject& node = *as_node(object);
    static PyObject* nothing = PyTuple_New(0);
    Py_SETREF(node.value, counted(value.ptr()));
    Py_SETREF(node.run, counted(Py_None));
    Py_SETREF(node.inputs, counted(nothing));
}

PyObject* evaluate(PyObject* object) {
    if (as_node(object)->run == Py_None) return as_node(object)->value;
    NodeStack stack;  // of our own, since chains are long
    stack.nodes.push_back(object);
    while (stack.nodes.size() > stack.base) {
        PyObject* top = stack.nodes.back();
        if (as_node(top)->run != Py_None) {
            if (push_missing(*as_node(top), stack.nodes)) continue;
            run_node(top);
        }
        stack.nodes.pop_back();
    }
    return as_node(object)->value;
}

bool is_determined(PyObject* object) {
    static uint64_t visits = 0;
    static std::vector<PyObject*> stack;
    ++visits;
    stack.assign(1, object);
    while (!stack.empty()) {
        const NodeObject& node = *as_node(stack.back());
        stack.pop_back();
        if (node.run == language.not_captured) return false;
        const Py_ssize_t count = PySequence_Fast_GET_SIZE(node.inputs);
        PyObject** inputs = PySequence_Fast_ITEMS(node.inputs);
        for (Py_ssize_t place = 0; place < count; ++place) {
            NodeObject& input = *as_node(inputs[place]);
            if (input.run == Py_None || input.visit == visits) continue;
            input.visit = visits;
            stack.push_back(inputs[place]);
        }
    }
    return true;
}

void bind_nodes(nb::module_& module) {
    PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_node)},
                           {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
                           {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                           {Py_tp_clear, reinterpret_cast<void*>(clear)},
                           {Py_tp_members, members},
                           {Py_tp_getset, properties},
                           {Py_tp_methods, methods},
                           {0, nullptr}};
    PyType_Spec spec = {"tilewright.engine._core.Node", sizeof(NodeObject), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
    const Ref type = checked(PyType_FromSpec(&spec));
    node_type = reinterpret_cast<PyTypeObject*>(counted(type.ptr()));
    module.attr("Node") = type;
    module.def("evaluate", [](nb::handle node) { return borrow(evaluate(node.ptr())); });
    module.def("is_determined", [](nb::handle node) { return is_determined(node.ptr()); });
    module.def("source_line", [] {
        const SourceLine line = source_line();
        return line_tuple(line.code, line.instruction);
    });
}

}  // namespace tilewright
