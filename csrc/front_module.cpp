// The front of the language in the private module tilewright.native._core.
#include "front_module.hpp"

#include <nanobind/stl/string.h>

#include "front_call.hpp"
#include "front_desk.hpp"
#include "front_effect.hpp"
#include "front_order.hpp"
#include "front_path.hpp"
#include "front_scalar.hpp"
#include "front_node.hpp"
#include "front_value.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

PyObject* kept(const nb::dict& names, const char* name) {
    return counted(nb::object(names[name]).ptr());
}

PyTypeObject* kept_type(const nb::dict& names, const char* name) {
    return reinterpret_cast<PyTypeObject*>(kept(names, name));
}

// What the language hands over by name once it has been imported.
void adopt_language(const nb::dict& names) {
    language.index = kept_type(names, "Index");
    language.mask = kept_type(names, "Mask");
    language.pointers = kept_type(names, "Pointers");
    language.block = kept_type(names, "Block");
    language.int32_scalar = kept_type(names, "Int32");
    language.int64_scalar = kept_type(names, "Int64");
    language.scalar_result = kept(names, "scalar_result");
    language.strong_number = kept(names, "strong_number");
    language.int1 = kept(names, "int1");
    language.int4 = kept(names, "int4");
    language.int32 = kept(names, "int32");
    language.int64 = kept(names, "int64");
    language.float32 = kept(names, "float32");
    language.affine = kept(names, "Affine");
    language.box = kept(names, "Box");
    language.block_type = kept(names, "block_type");
    language.pointer_type = kept(names, "PointerType");
    language.explained = kept(names, "explained");
    language.not_captured = kept(names, "not_captured");
    language.add_place = kept(names, "add_place");
    language.error = kept(names, "TilewrightError");
    language.empty = kept(names, "empty");
    language.array = kept(names, "ndarray");
    language.add = kept(names, "add");
    language.subtract = kept(names, "subtract");
    language.multiply = kept(names, "multiply");
    language.divide = kept(names, "divide");
    language.spread = kept(names, "spread");
    language.rooms = kept(names, "ROOMS");
    language.getcurrent = kept(names, "getcurrent");
    adopt_ends();
}

// What the executor hands over, likewise.
void adopt_executor(const nb::dict& names) {
    executor.walk = kept(names, "Walk");
    executor.read = kept(names, "READ");
    executor.write = kept(names, "WRITE");
    executor.outcomes[static_cast<int>(Outcome::kIssued)] = kept(names, "ISSUED");
    executor.outcomes[static_cast<int>(Outcome::kUnsupported)] = kept(names, "UNSUPPORTED");
    executor.outcomes[static_cast<int>(Outcome::kBatchFull)] = kept(names, "BATCH_FULL");
    executor.outcomes[static_cast<int>(Outcome::kOffsetsPending)] = kept(names, "OFFSETS_PENDING");
}

// As known_binary of language/known.py, where it needs no block; else None.
nb::object known_binary(const std::string& op, nb::handle left, nb::handle right) {
    for (int number = 0; number < static_cast<int>(Op::kCount); ++number) {
        const Op each = static_cast<Op>(number);
        if (PyUnicode_CompareWithASCIIString(op_name(each), op.c_str()) != 0) continue;
        PyObject* found = known_result(each, left.ptr(), right.ptr());
        if (found == nullptr && PyErr_Occurred()) nb::raise_python_error();
        return found == nullptr ? nb::none() : steal(found);
    }
    return nb::none();
}

}  // namespace

void bind_front(nb::module_& module) {
    bind_scalars(module);
    bind_values(module);
    bind_nodes(module);
    bind_order(module);
    bind_path(module);
    bind_effects(module);
    bind_desk(module);
    bind_calls(module);
    module.def("adopt_language", &adopt_language);
    module.def("adopt_executor", &adopt_executor);
    module.def("known_binary", &known_binary);
}

}  // namespace tilewright
