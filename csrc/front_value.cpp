// The objects behind language/value.py: what they hold, how they are made and let go.
#include "front_value.hpp"

#include <structmember.h>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "front_desk.hpp"
#include "front_layout.hpp"
#include "front_spare.hpp"

namespace nb = nanobind;

namespace tilewright {

Language language{};
Executor executor{};

Ref tuple_of(const int64_t* numbers, int count) {
    Ref tuple = checked(PyTuple_New(count));
    for (int place = 0; place < count; ++place) {
        Ref number = checked(PyLong_FromLongLong(numbers[place]));
        PyTuple_SET_ITEM(tuple.ptr(), place, number.release().ptr());
    }
    return tuple;
}

bool read_numbers(PyObject* tuple, int64_t* numbers, int& count) {
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > kMaxAxes) {
        PyErr_Format(PyExc_TypeError, "%R instead of a tuple of at most %d axes", tuple, kMaxAxes);
        return false;
    }
    count = static_cast<int>(PyTuple_GET_SIZE(tuple));
    for (int place = 0; place < count; ++place) {
        numbers[place] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, place));
        if (numbers[place] == -1 && PyErr_Occurred()) return false;
    }
    return true;
}

namespace {

// --- from and to the Python classes Affine and Box, which the slower paths compute with

bool read_field(PyObject* object, const char* name, int64_t* numbers, int& count) {
    const Ref field = steal(PyObject_GetAttrString(object, name));
    return field.is_valid() && read_numbers(field.ptr(), numbers, count);
}

bool read_form(PyObject* affine, Form& form) {
    int rank;
    if (!read_field(affine, "shape", form.shape.extents, form.shape.rank)) return false;
    if (!read_field(affine, "strides", form.strides, rank)) return false;
    const Ref base = steal(PyObject_GetAttrString(affine, "base"));
    if (!base.is_valid()) return false;
    form.base = PyLong_AsLongLong(base.ptr());
    return !(form.base == -1 && PyErr_Occurred());
}

bool read_region(PyObject* box, Region& region) {
    int rank;
    return read_field(box, "shape", region.shape.extents, region.shape.rank) &&
           read_field(box, "low", region.low, rank) && read_field(box, "high", region.high, rank);
}

PyObject* affine_of(const Form& form) {
    try {
        const Ref base = checked(PyLong_FromLongLong(form.base));
        const Ref strides = tuple_of(form.strides, form.shape.rank);
        const Ref shape = tuple_of(form.shape.extents, form.shape.rank);
        PyObject* parts[] = {base.ptr(), strides.ptr(), shape.ptr()};
        return PyObject_Vectorcall(language.affine, parts, 3, nullptr);
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
}

PyObject* box_of(const Region& region) {
    try {
        const int rank = region.shape.rank;
        const Ref low = tuple_of(region.low, rank), high = tuple_of(region.high, rank);
        const Ref shape = tuple_of(region.shape.extents, rank);
        PyObject* parts[] = {low.ptr(), high.ptr(), shape.ptr()};
        return PyObject_Vectorcall(language.box, parts, 3, nullptr);
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
}

// The type of an index or mask, found when somebody asks.
PyObject* lazy_type(PyObject*& type, PyObject* dtype, const Shape& shape) {
    try {
        if (type == nullptr) type = counted(block_type_of(dtype, shape));
        return counted(type);
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
}

// The classes of language/value.py, whose objects are made here.
PyTypeObject* own_type(const IndexObject*) { return language.index; }
PyTypeObject* own_type(const MaskObject*) { return language.mask; }
PyTypeObject* own_type(const PointersObject*) { return language.pointers; }
PyTypeObject* own_type(const BlockObject*) { return language.block; }

// What is not zero in a new object, since whoever makes it fills it in.
constexpr size_t zeros_end(const IndexObject*) { return offsetof(IndexObject, form); }
constexpr size_t zeros_end(const MaskObject*) { return offsetof(MaskObject, region); }
constexpr size_t zeros_end(const PointersObject*) { return offsetof(PointersObject, form); }
constexpr size_t zeros_end(const BlockObject*) { return sizeof(BlockObject); }

template <typename Object>
Object* allocated(PyTypeObject* type, PyObject* program) {
    Object* object = nullptr;
    if (type == own_type(object)) {
        object = Spares<Object>::take(type, zeros_end(object));
    } else {
        object = reinterpret_cast<Object*>(type->tp_alloc(type, 0));
    }
    if (object != nullptr) object->program = counted(program);
    return object;
}

uint32_t turn_of(PyObject* desk) {
    return desk == Py_None ? 0 : nb::inst_ptr<Desk>(desk)->turn();
}

// --- life of the objects

// The references of each kind, for the garbage collector and the end.
template <typename Visit>
int each_reference(IndexObject* index, Visit visit) {
    return visit(index->program) || visit(index->type);
}
template <typename Visit>
int each_reference(MaskObject* mask, Visit visit) {
    return visit(mask->program) || visit(mask->type);
}
template <typename Visit>
int each_reference(PointersObject* pointers, Visit visit) {
    return visit(pointers->program) || visit(pointers->element) || visit(pointers->offsets);
}
template <typename Visit>
int each_reference(BlockObject* block, Visit visit) {
    return visit(block->program) || visit(block->type) || visit(block->node) ||
           visit(block->parent) || visit(block->transposing) || visit(block->desk);
}

template <typename Object>
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    return each_reference(reinterpret_cast<Object*>(self), [visit, arg](PyObject*& held) {
        return held != nullptr ? visit(held, arg) : 0;
    });
}

// The kernel holds a value no more: its space can be taken once its last command has ended.
void let_go(BlockObject* block) {
    if (block->number == kNoNumber || block->parent != Py_None || block->desk == nullptr) return;
    const int64_t number = std::exchange(block->number, kNoNumber);
    if (block->desk != Py_None) {
        Desk& desk = *nb::inst_ptr<Desk>(block->desk);
        if (block->turn == desk.turn()) desk.release(number);
        return;
    }
    if (block->program == Py_None) return;
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    const Ref called = steal(PyObject_CallMethod(block->program, "release", "L",
                                                 static_cast<long long>(number)));
    if (!called.is_valid()) PyErr_WriteUnraisable(block->program);
    PyErr_Restore(kind, value, trace);
}

// Before the garbage collector clears a circle, the program among it; else the end does it.
template <typename Object>
void finalize(PyObject* self) {
    if constexpr (std::is_same_v<Object, BlockObject>) let_go(as_block(self));
}

template <typename Object>
int clear(PyObject* self) {
    return each_reference(reinterpret_cast<Object*>(self), [](PyObject*& held) {
        Py_CLEAR(held);
        return 0;
    });
}

template <typename Object>
void deallocate(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    finalize<Object>(self);
    clear<Object>(self);
    if (type == own_type(static_cast<Object*>(nullptr))) {
        Spares<Object>::give(type, self);
    } else {
        type->tp_free(self);
    }
    Py_DECREF(type);
}

// Python gives a class that it makes an end of its own, which finalizes objects first: none of them
// would be used again. A class that adds no fields to ours can have ours.
template <typename Object>
void adopt_end(PyTypeObject* type) {
    const bool adds_fields = type->tp_basicsize != sizeof(Object) || type->tp_dictoffset != 0 ||
                             type->tp_weaklistoffset != 0;
    if (!adds_fields) type->tp_dealloc = deallocate<Object>;
}

// --- as Python makes them

PyObject* new_index(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject *program, *affine, *dtype;
    Form form;
    if (!PyArg_ParseTuple(args, "OOO", &program, &affine, &dtype)) return nullptr;
    if (!read_form(affine, form)) return nullptr;
    auto* index = allocated<IndexObject>(type, program);
    if (index == nullptr) return nullptr;
    index->form = form;
    index->is_wide = dtype == language.int64;
    return reinterpret_cast<PyObject*>(index);
}

PyObject* new_mask(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject *program, *box;
    Region region;
    if (!PyArg_ParseTuple(args, "OO", &program, &box)) return nullptr;
    if (!read_region(box, region)) return nullptr;
    auto* mask = allocated<MaskObject>(type, program);
    if (mask == nullptr) return nullptr;
    mask->region = region;
    return reinterpret_cast<PyObject*>(mask);
}

PyObject* new_pointers(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject *program, *affine, *element, *offsets = Py_None;
    Form form;
    if (!PyArg_ParseTuple(args, "OOO|O", &program, &affine, &element, &offsets)) return nullptr;
    if (!read_form(affine, form)) return nullptr;
    const Ref step = steal(PyObject_GetAttrString(element, "step"));
    if (!step.is_valid()) return nullptr;
    auto* pointers = allocated<PointersObject>(type, program);
    if (pointers == nullptr) return nullptr;
    pointers->form = form;
    pointers->element = counted(element);
    pointers->offsets = counted(offsets);
    pointers->step = PyLong_AsLongLong(step.ptr());
    return reinterpret_cast<PyObject*>(pointers);
}

PyObject* new_block(PyTypeObject* type, PyObject* args, PyObject* names) {
    PyObject *program, *kind, *node, *number, *parent = Py_None, *transposing = Py_None;
    static const char* keywords[] = {"program", "kind",        "node", "number",
                                     "parent",  "transposing", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, names, "OOOO|OO", const_cast<char**>(keywords), &program,
                                     &kind, &node, &number, &parent, &transposing)) {
        return nullptr;
    }
    const int64_t value = number == Py_None ? kNoNumber : PyLong_AsLongLong(number);
    if (value == -1 && PyErr_Occurred()) return nullptr;
    Ref desk = nb::none();
    if (program != Py_None) {
        desk = steal(PyObject_GetAttrString(program, "desk"));
        if (!desk.is_valid()) return nullptr;
    }
    auto* block = allocated<BlockObject>(type, program);
    if (block == nullptr) return nullptr;
    block->type = counted(kind);
    block->node = counted(node);
    block->parent = counted(parent);
    block->transposing = counted(transposing);
    block->desk = desk.release().ptr();
    block->number = value;
    block->turn = turn_of(block->desk);
    return reinterpret_cast<PyObject*>(block);
}

// --- what Python reads

PyObject* index_type(PyObject* self, void*) {
    IndexObject* index = as_index(self);
    PyObject* dtype = index->is_wide ? language.int64 : language.int32;
    return lazy_type(index->type, dtype, index->form.shape);
}

PyObject* mask_type(PyObject* self, void*) {
    return lazy_type(as_mask(self)->type, language.int1, as_mask(self)->region.shape);
}

PyObject* pointers_type(PyObject* self, void*) {
    PyObject* element = as_pointers(self)->element;
    return PyObject_Vectorcall(language.pointer_type, &element, 1, nullptr);
}

PyObject* index_affine(PyObject* self, void*) { return affine_of(as_index(self)->form); }
PyObject* pointers_affine(PyObject* self, void*) { return affine_of(as_pointers(self)->form); }
PyObject* mask_box(PyObject* self, void*) { return box_of(as_mask(self)->region); }

PyObject* number_object(int64_t number) {
    return number == kNoNumber ? counted(Py_None) : PyLong_FromLongLong(number);
}

PyObject* block_number(PyObject* self, void*) {
    try {
        return number_object(placed_number(self));
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
}

PyObject* block_held(PyObject* self, void*) { return number_object(as_block(self)->number); }

int set_block_held(PyObject* self, PyObject* value, void*) {
    const int64_t number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred()) return -1;
    as_block(self)->number = number;
    return 0;
}

// None stands for no parent in the object, as it does in Python
PyMemberDef index_members[] = {
    {"program", T_OBJECT_EX, offsetof(ValueObject, program), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef index_properties[] = {{"type", index_type, nullptr, nullptr, nullptr},
                                  {"affine", index_affine, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyGetSetDef mask_properties[] = {{"type", mask_type, nullptr, nullptr, nullptr},
                                 {"box", mask_box, nullptr, nullptr, nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef pointers_members[] = {
    {"program", T_OBJECT_EX, offsetof(ValueObject, program), READONLY, nullptr},
    {"element", T_OBJECT_EX, offsetof(PointersObject, element), READONLY, nullptr},
    {"offsets", T_OBJECT_EX, offsetof(PointersObject, offsets), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef pointers_properties[] = {{"type", pointers_type, nullptr, nullptr, nullptr},
                                     {"affine", pointers_affine, nullptr, nullptr, nullptr},
                                     {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef block_members[] = {
    {"program", T_OBJECT_EX, offsetof(ValueObject, program), READONLY, nullptr},
    {"type", T_OBJECT_EX, offsetof(BlockObject, type), READONLY, nullptr},
    {"node", T_OBJECT_EX, offsetof(BlockObject, node), 0, nullptr},
    {"parent", T_OBJECT_EX, offsetof(BlockObject, parent), 0, nullptr},
    {"transposing", T_OBJECT_EX, offsetof(BlockObject, transposing), 0, nullptr},
    {"is_there", T_BOOL, offsetof(BlockObject, is_there), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef block_properties[] = {{"number", block_number, nullptr, nullptr, nullptr},
                                  {"held", block_held, set_block_held, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};

#define SLOT(name, function) {name, reinterpret_cast<void*>(function)}

template <typename Object>
void bind_value(nb::module_& module, const char* name, newfunc make, PyMemberDef* members,
                PyGetSetDef* properties) {
    const PyNumberMethods operators = make_operators();
    PyType_Slot slots[] = {SLOT(Py_tp_new, make),
                           SLOT(Py_tp_dealloc, deallocate<Object>),
                           SLOT(Py_tp_finalize, finalize<Object>),
                           SLOT(Py_tp_traverse, traverse<Object>),
                           SLOT(Py_tp_clear, clear<Object>),
                           SLOT(Py_tp_members, members),
                           SLOT(Py_tp_getset, properties),
                           SLOT(Py_tp_richcompare, compare_values),
                           SLOT(Py_tp_hash, PyObject_HashNotImplemented),
                           SLOT(Py_mp_subscript, subscript_value),
                           SLOT(Py_nb_add, operators.nb_add),
                           SLOT(Py_nb_subtract, operators.nb_subtract),
                           SLOT(Py_nb_multiply, operators.nb_multiply),
                           SLOT(Py_nb_true_divide, operators.nb_true_divide),
                           SLOT(Py_nb_floor_divide, operators.nb_floor_divide),
                           SLOT(Py_nb_remainder, operators.nb_remainder),
                           SLOT(Py_nb_and, operators.nb_and),
                           SLOT(Py_nb_or, operators.nb_or),
                           SLOT(Py_nb_xor, operators.nb_xor),
                           SLOT(Py_nb_lshift, operators.nb_lshift),
                           SLOT(Py_nb_rshift, operators.nb_rshift),
                           SLOT(Py_nb_negative, operators.nb_negative),
                           SLOT(Py_nb_invert, operators.nb_invert),
                           {0, nullptr}};
    const std::string full_name = std::string("tilewright.native._core.") + name;
    PyType_Spec spec = {full_name.c_str(), sizeof(Object), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    module.attr(name) = checked(PyType_FromSpec(&spec));
}

#undef SLOT

}  // namespace

PyObject* make_index(PyObject* program, const Form& form, bool is_wide) {
    auto* index = allocated<IndexObject>(language.index, program);
    if (index == nullptr) return nullptr;
    index->form = form;
    index->is_wide = is_wide;
    return reinterpret_cast<PyObject*>(index);
}

PyObject* index_range(PyObject* program, int64_t start, int64_t end) {
    Form form;
    form.base = start;
    form.shape.rank = 1;
    form.shape.extents[0] = end - start;
    form.strides[0] = 1;
    return make_index(program, form, false);
}

PyObject* pointers_at(PyObject* program, int64_t address, PyObject* element, int64_t step) {
    auto* pointers = allocated<PointersObject>(language.pointers, program);
    if (pointers == nullptr) return nullptr;
    pointers->form.base = address;
    pointers->form.shape.rank = 0;
    pointers->element = counted(element);
    pointers->offsets = counted(Py_None);
    pointers->step = step;
    return reinterpret_cast<PyObject*>(pointers);
}

PyObject* make_mask(PyObject* program, const Region& region) {
    auto* mask = allocated<MaskObject>(language.mask, program);
    if (mask != nullptr) mask->region = region;
    return reinterpret_cast<PyObject*>(mask);
}

PyObject* make_pointers(const PointersObject& like, const Form& form, PyObject* offsets) {
    auto* pointers = allocated<PointersObject>(language.pointers, like.program);
    if (pointers == nullptr) return nullptr;
    pointers->form = form;
    pointers->element = counted(like.element);
    pointers->offsets = counted(offsets);
    pointers->step = like.step;
    return reinterpret_cast<PyObject*>(pointers);
}

PyObject* make_block(PyObject* program, PyObject* desk, PyObject* type, PyObject* node,
                     int64_t number, PyObject* parent) {
    auto* block = allocated<BlockObject>(language.block, program);
    if (block == nullptr) return nullptr;
    block->type = counted(type);
    block->node = counted(node);
    block->parent = counted(parent);
    block->transposing = counted(Py_None);
    block->desk = counted(desk);
    block->number = number;
    block->turn = turn_of(desk);
    return reinterpret_cast<PyObject*>(block);
}

int64_t placed_number(PyObject* value) {
    static PyObject* placed = PyUnicode_InternFromString("placed");
    const BlockObject& block = *as_block(value);
    if (block.transposing != Py_None) {
        checked(PyObject_CallMethodObjArgs(block.program, placed, value, nullptr));
    }
    return block.number;
}

void adopt_ends() {
    adopt_end<IndexObject>(language.index);
    adopt_end<MaskObject>(language.mask);
    adopt_end<PointersObject>(language.pointers);
    adopt_end<BlockObject>(language.block);
}

void bind_values(nb::module_& module) {
    bind_value<IndexObject>(module, "IndexFields", new_index, index_members, index_properties);
    bind_value<MaskObject>(module, "MaskFields", new_mask, index_members, mask_properties);
    bind_value<PointersObject>(module, "PointersFields", new_pointers, pointers_members,
                               pointers_properties);
    bind_value<BlockObject>(module, "BlockFields", new_block, block_members, block_properties);
}

}  // namespace tilewright
