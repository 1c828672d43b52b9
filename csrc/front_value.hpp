// What a kernel holds, as objects of Python: fields and operators of language/value.py's classes.
#pragma once

#include <nanobind/nanobind.h>

#include "front_form.hpp"

namespace tilewright {

// Counted references and attributes, for code that calls Python's C interface directly: values are
// made and dropped several times a microsecond.
using Ref = nanobind::object;

inline Ref steal(PyObject* made) { return nanobind::steal(made); }
inline Ref borrow(PyObject* known) { return nanobind::borrow(known); }
inline PyObject* counted(PyObject* known) {
    Py_INCREF(known);
    return known;
}
// Throws if what was made is an error.
inline Ref checked(PyObject* made) {
    if (made == nullptr) nanobind::raise_python_error();
    return steal(made);
}

// The language's own classes and functions that this code makes or calls; see adopt_language.
struct Language {
    PyTypeObject *index, *mask, *pointers, *block;  // subclasses of the types below
    PyTypeObject *int32_scalar, *int64_scalar;
    PyObject *int1, *int4, *int32, *int64, *float32;
    PyObject* scalar_result;  // (op, left, right): of what compiled code does not compute itself
    PyObject* strong_number;  // (value): what a Triton kernel assigns
    PyObject *affine, *box;  // classes
    PyObject *block_type, *pointer_type;
    PyObject *explained;      // (error, node): the error to raise
    PyObject *not_captured;   // what runs for a value that is not there
    PyObject *add_place;      // (error, place)
    PyObject *error;          // TilewrightError
    PyObject *empty, *array;  // NumPy's empty, and its class of arrays
    PyObject *add, *subtract, *multiply, *divide;  // NumPy's
    PyObject *spread;         // (value, shape, dtype): an array of that shape
    PyObject *rooms;          // the directories of the language's own code, as a tuple
    PyObject *getcurrent;     // the greenlet that runs
};
extern Language language;

// What this code knows of the device, which the executor drives; see adopt_executor.
struct Executor {
    PyObject *walk;          // the class of walks of a page table
    PyObject *read, *write;  // Access
    PyObject* outcomes[4];   // members of executor/run.py's Outcome, in the order of ours
};
extern Executor executor;

// Plain structures, since Python finds their members by offsets.
#define VALUE_HEAD PyObject_HEAD PyObject* program;

struct ValueObject {
    VALUE_HEAD
};

struct IndexObject {
    VALUE_HEAD
    bool is_wide;    // int64
    PyObject* type;  // a BlockType once somebody asked
    Form form;
};

struct MaskObject {
    VALUE_HEAD
    PyObject* type;
    Region region;
};

struct PointersObject {
    VALUE_HEAD
    PyObject* element;
    PyObject* offsets;  // or None
    int64_t step;
    Form form;
};

struct BlockObject {
    VALUE_HEAD
    PyObject* type;
    PyObject* node;         // or None
    PyObject* parent;       // or None
    PyObject* transposing;  // the plan of the command that is to move its bytes, or None
    PyObject* desk;         // of the program, or None
    int64_t number;         // of what holds its bytes; kNoNumber for a constant
    uint32_t turn;          // of the desk, when it was made
    bool is_there;          // the program has waited for it, and its node has the value
};

#undef VALUE_HEAD

constexpr int64_t kNoNumber = -1;

inline ValueObject* as_value(PyObject* value) { return reinterpret_cast<ValueObject*>(value); }
inline IndexObject* as_index(PyObject* value) { return reinterpret_cast<IndexObject*>(value); }
inline MaskObject* as_mask(PyObject* value) { return reinterpret_cast<MaskObject*>(value); }
inline PointersObject* as_pointers(PyObject* value) {
    return reinterpret_cast<PointersObject*>(value);
}
inline BlockObject* as_block(PyObject* value) { return reinterpret_cast<BlockObject*>(value); }

inline bool is_index(PyObject* value) { return Py_TYPE(value) == language.index; }
inline bool is_mask(PyObject* value) { return Py_TYPE(value) == language.mask; }
inline bool is_pointers(PyObject* value) { return Py_TYPE(value) == language.pointers; }
inline bool is_block(PyObject* value) { return Py_TYPE(value) == language.block; }

// A number of Python's own.
inline bool is_number(PyObject* value) { return PyLong_Check(value) || PyFloat_Check(value); }

// New references; nullptr with an error set if there is no memory.
PyObject* make_index(PyObject* program, const Form& form, bool is_wide);
PyObject* index_range(PyObject* program, int64_t start, int64_t end);
PyObject* pointers_at(PyObject* program, int64_t address, PyObject* element, int64_t step);
PyObject* make_mask(PyObject* program, const Region& region);
PyObject* make_pointers(const PointersObject& like, const Form& form, PyObject* offsets);
PyObject* make_block(PyObject* program, PyObject* desk, PyObject* type, PyObject* node,
                     int64_t number, PyObject* parent);

// The number of a block's bytes in their order: those of a transposed one are moved now. An error
// throws.
int64_t placed_number(PyObject* block);

Ref tuple_of(const int64_t* numbers, int count);
// False with an error set if it is no tuple of at most kMaxAxes integers of 64 bits.
bool read_numbers(PyObject* tuple, int64_t* numbers, int& count);

constexpr int64_t kInt32Limit = int64_t{1} << 31;

enum class Op {
    kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kAnd, kOr, kXor, kShl, kShr,
    kLt, kLe, kEq, kNe, kGt, kGe, kMinimum, kMaximum, kQuotient,
    kRemainder, kCount
};  // the comparisons in the order of Python's Py_LT

PyObject* op_name(Op op);  // as Program.binary knows it; borrowed

// As known.py's known_binary, and Program's rules for indices and addresses beside a block that is
// there or is an offset: a new reference, or nullptr without an error if Python has to decide. One of
// the operands is no block.
PyObject* known_result(Op op, PyObject* left, PyObject* right);

inline bool is_value(PyObject* value) {
    return is_index(value) || is_block(value) || is_pointers(value) || is_mask(value);
}

// What an operator of values gives; one of the operands is one. A new reference, or nullptr with an
// error set.
PyObject* operate_values(Op op, PyObject* left, PyObject* right);

// The slots that all four types share.
PyNumberMethods make_operators();
PyObject* compare_values(PyObject* left, PyObject* right, int op);
PyObject* subscript_value(PyObject* value, PyObject* key);

// Lets go of objects of the language's classes, once these are known, without Python's own way.
void adopt_ends();

void bind_values(nanobind::module_& module);

}  // namespace tilewright
