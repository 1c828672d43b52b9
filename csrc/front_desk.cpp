// Commands of vector and GEMM unit, and what their values occupy.
#include "front_desk.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "front_collect.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

constexpr size_t kMaxConstants = 4096;  // a kernel that counts in Python makes ever new ones

Ref attribute(PyObject* object, const char* name) {
    return checked(PyObject_GetAttrString(object, name));
}

bool flag(PyObject* object, const char* name) {
    return attribute(object, name).ptr() == Py_True;
}

Ref pair_of(PyObject* first, PyObject* second) {
    return checked(second == nullptr ? PyTuple_Pack(1, first) : PyTuple_Pack(2, first, second));
}

// What tells a number from others of its type; false if 64 bits do not.
bool bits_of(PyObject* number, int64_t& bits) {
    if (PyFloat_Check(number)) {
        bits = std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(number));
        return true;
    }
    int overflow;
    bits = PyLong_AsLongLongAndOverflow(number, &overflow);
    return overflow == 0;
}

Ref no_attributes() {
    static PyObject* empty = PyTuple_New(0);
    return borrow(empty);
}

}  // namespace

// --- plans

const PlanView& PlanShelf::find(PyObject* program, PyObject* op, const Ref& types,
                                const Ref& attributes) {
    const Ref key = checked(PyTuple_Pack(3, op, types.ptr(), attributes.ptr()));
    PyObject* plan = PyDict_GetItemWithError(plans_.ptr(), key.ptr());
    if (plan != nullptr) return view_of(plan);
    if (PyErr_Occurred()) nb::raise_python_error();
    const Ref found = checked(PyObject_CallMethod(program, "plan", "OOO", op, types.ptr(),
                                                  attributes.ptr()));
    return view_of(found.ptr());
}

const PlanView& PlanShelf::view_of(PyObject* plan) {
    PlanView& view = views_[plan];
    if (!view.plan.is_valid()) {
        const Ref types = attribute(plan, "types");
        view.run = attribute(plan, "run");
        view.type = borrow(PyTuple_GetItem(types.ptr(), 0));
        view.number = nb::cast<int64_t>(attribute(plan, "number"));
        view.is_view = flag(plan, "is_view");
        view.transposes = flag(plan, "transposes");
        view.num_factors = nb::cast<size_t>(attribute(plan, "num_factors"));
        view.has_floats = flag(plan, "has_floats");
        view.is_single = PyTuple_Size(types.ptr()) == 1;
        view.plan = borrow(plan);
    }
    return view;
}

// By op, type of the number and type beside it; a number of more than 64 bits has no key.
ConstantView PlanShelf::constant(PyObject* program, PyObject* op, PyObject* number,
                                 PyObject* block) {
    PlanKey key{op, reinterpret_cast<PyObject*>(Py_TYPE(number)), as_block(block)->type, 0};
    const bool has_key = bits_of(number, key.axis);
    const auto known = has_key ? constants_.find(key) : constants_.end();
    if (known != constants_.end()) return known->second;
    const Ref made = checked(PyObject_CallMethod(program, "block", "OOO", number, block, op));
    const ConstantView view{borrow(as_block(made.ptr())->type), borrow(as_block(made.ptr())->node)};
    if (has_key && constants_.size() < kMaxConstants) constants_.emplace(key, view);
    return view;
}

Fill PlanShelf::fill(PyObject* program, PyObject* number, PyObject* dtype) {
    Fill fill{};
    if (number == Py_None) return fill;
    PlanKey key{nullptr, reinterpret_cast<PyObject*>(Py_TYPE(number)), dtype, 0};
    const bool has_key = bits_of(number, key.axis);
    const auto known = has_key ? fills_.find(key) : fills_.end();
    if (known != fills_.end()) return known->second;
    const Ref element = checked(PyObject_CallMethod(program, "element", "OO", number, dtype));
    const Ref bytes = checked(PyObject_CallMethod(element.ptr(), "tobytes", nullptr));
    std::memcpy(fill.data(), PyBytes_AsString(bytes.ptr()), PyBytes_Size(bytes.ptr()));
    if (has_key && fills_.size() < kMaxConstants) fills_.emplace(key, fill);
    return fill;
}

bool PlanShelf::has_copies(Spans spans) const {
    for (const auto& [low, high] : copies_) {
        for (const Strided& span : spans) {
            if (span.address < high && span.end() > low) return true;
        }
    }
    return false;
}

nb::tuple PlanShelf::take_counts() {
    return nb::make_tuple(std::exchange(num_loads, 0), std::exchange(num_stores, 0),
                          std::exchange(num_gathers, 0), std::exchange(loaded_bytes, 0), std::exchange(stored_bytes, 0));
}

int PlanShelf::traverse(visitproc visit, void* arg) {
    Py_VISIT(plans_.ptr());
    for (const auto& [plan, view] : views_) {
        Py_VISIT(view.plan.ptr());
        Py_VISIT(view.run.ptr());
    }
    return 0;
}

void PlanShelf::clear() {
    by_types.clear();
    calls.clear();
    constants_.clear();
    views_.clear();
    plans_ = nb::dict();
}

// --- commands

Desk::Desk(nb::handle program, nb::object shelf, nb::object walker, nb::object issuer,
           nb::object effects, nb::object paths, nb::object order)
    : program_(program.ptr()),
      shelf_object_(std::move(shelf)),
      walker_(std::move(walker)),
      issuer_object_(std::move(issuer)),
      effects_object_(std::move(effects)),
      paths_object_(std::move(paths)),
      order_object_(std::move(order)),
      shelf_(nb::cast<PlanShelf&>(shelf_object_)),
      issuer_(nb::cast<Issuer&>(issuer_object_)),
      effects_(nb::cast<EffectLog&>(effects_object_)),
      paths_(nb::cast<PathFinder&>(paths_object_)),
      order_(nb::cast<AccessOrder&>(order_object_)) {}

Desk* Desk::of(PyObject* program) {
    static PyObject* name = PyUnicode_InternFromString("desk");
    if (last_found != nullptr && last_found->program_ == program) return last_found;
    const Ref desk = checked(PyObject_GetAttr(program, name));  // which the program holds
    return desk.is_none() ? nullptr : last_found = nb::inst_ptr<Desk>(desk);
}

PyObject* Desk::self() const {
    if (self_ == nullptr) self_ = nb::find(*this).ptr();
    return self_;
}

PyObject* Desk::id(int64_t axis) const {
    PyObject* ids = PyTuple_GET_ITEM(title_.ptr(), 0);  // the first of a ProgramTitle
    return axis >= 0 && axis < PyTuple_GET_SIZE(ids) ? PyTuple_GET_ITEM(ids, axis) : nullptr;
}

void Desk::begin(nb::object title) {
    if (turn_ > 0) issuer_.finish();
    title_ = std::move(title);
    order_.clear();
    tiles_.clear();
    first_command = issuer_.num_commands();
    ++turn_;
    is_over_ = false;
}

void Desk::begin_anew(nb::handle ids) {
    static PyObject* ids_name = PyUnicode_InternFromString("ids");
    static PyObject* title_name = PyUnicode_InternFromString("title");
    PyTypeObject* type = Py_TYPE(title_.ptr());  // a tuple with names: ids, and what stays
    const Py_ssize_t size = PyTuple_GET_SIZE(title_.ptr());
    const Ref title = checked(type->tp_alloc(type, size));
    PyTuple_SET_ITEM(title.ptr(), 0, counted(ids.ptr()));
    for (Py_ssize_t place = 1; place < size; ++place) {
        PyTuple_SET_ITEM(title.ptr(), place, counted(PyTuple_GET_ITEM(title_.ptr(), place)));
    }
    if (PyObject_SetAttr(program_, ids_name, ids.ptr()) < 0 ||
        PyObject_SetAttr(program_, title_name, title.ptr()) < 0) {
        nb::raise_python_error();
    }
    begin(title);
}

PyObject* Desk::combine(Op op, PyObject* left, PyObject* right) {
    note_other();
    PyObject* name = op_name(op);
    PyObject *left_type = as_block(left)->type, *right_type = as_block(right)->type;
    const PlanView*& plan = shelf_.by_types[{name, left_type, right_type, 0}];
    if (plan == nullptr) {
        plan = &shelf_.find(program_, name, pair_of(left_type, right_type), no_attributes());
    }
    PyObject* operands[] = {left, right};
    return result(*plan, operands, 2);
}

PyObject* Desk::combine_with_number(Op op, PyObject* left, PyObject* right) {
    PyObject* number = is_block(left) ? right : left;
    if (!PyLong_Check(number) && !PyFloat_Check(number)) return nullptr;
    if (is_block(left)) return combine(op, left, constant(op, number, left).ptr());
    return combine(op, constant(op, number, right).ptr(), right);
}

Ref Desk::constant(Op op, PyObject* number, PyObject* block) {
    const ConstantView known = shelf_.constant(program_, op_name(op), number, block);
    return constant(known.type.ptr(), known.node.ptr());
}

Ref Desk::constant(PyObject* type, PyObject* node) {
    return checked(make_block(program_, self(), type, node, kNoNumber, Py_None));
}

PyObject* Desk::expand(PyObject* block, int axis) {
    note_other();
    static PyObject* name = PyUnicode_InternFromString("expand_dims");
    PyObject* type = as_block(block)->type;
    const PlanView*& plan = shelf_.by_types[{name, type, nullptr, axis}];
    if (plan == nullptr) {
        const Ref attributes = checked(Py_BuildValue("((i))", axis));
        plan = &shelf_.find(program_, name, pair_of(type, nullptr), attributes);
    }
    return result(*plan, &block, 1);
}

PyObject* Desk::compute(PyObject* op, const Ref& operands, const Ref& attributes) {
    const Py_ssize_t count = PyTuple_GET_SIZE(operands.ptr());
    PyObject** blocks = PySequence_Fast_ITEMS(operands.ptr());
    const Ref types = checked(PyTuple_New(count));
    for (Py_ssize_t place = 0; place < count; ++place) {
        PyTuple_SET_ITEM(types.ptr(), place, counted(as_block(blocks[place])->type));
    }
    const PlanView& plan = shelf_.find(program_, op, types, attributes);
    PyObject* made = result(plan, blocks, static_cast<size_t>(count));
    if (recording_ != nullptr) note(plan, blocks, static_cast<size_t>(count), made);
    return made;
}

void Desk::note(const PlanView& plan, PyObject* const* operands, size_t count, PyObject* made) {
    recording_->plan = &plan;
    recording_->result = made;
    if (++recording_->num_commands > 1) return;
    for (size_t place = 0; place < count; ++place) {
        recording_->operands.push_back(counted(operands[place]));
    }
}

PyObject* Desk::result(const PlanView& plan, PyObject* const* operands, size_t count) {
    if (plan.is_view || plan.transposes) return view(plan, operands[0]);
    if (plan.is_single) return command(plan, operands, count, plan.run.ptr());
    const Ref all = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (size_t place = 0; place < count; ++place) {
        PyTuple_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(place), counted(operands[place]));
    }
    return checked(PyObject_CallMethod(program_, "parts", "OO", plan.plan.ptr(), all.ptr()))
        .release()
        .ptr();
}

PyObject* Desk::view(const PlanView& plan, PyObject* operand) {
    const BlockObject& block = *as_block(operand);
    const int64_t number = placed_number(operand);
    Ref node = nb::none();
    if (block.node != Py_None) {
        node = steal(make_node(plan.run.ptr(), {&block.node, 1}, {}));
    }
    PyObject* parent = block.parent == Py_None ? operand : block.parent;
    if (number == kNoNumber) parent = Py_None;
    PyObject* made = make_block(program_, self(), plan.type.ptr(), node.ptr(), number, parent);
    if (made != nullptr && plan.transposes) {
        Py_SETREF(as_block(made)->transposing, counted(plan.plan.ptr()));
    }
    return made;
}

// Other programs run meanwhile: nothing of the command at hand may be in a vector of the desk.
void Desk::hand_over() {
    static PyObject* name = PyUnicode_InternFromString("hand_over_if_long");
    checked(PyObject_CallMethodNoArgs(program_, name));
}

PyObject* Desk::command(const PlanView& plan, PyObject* const* operands, size_t count,
                        PyObject* make) {
    if (is_full() && recording_ == nullptr && !is_composing) [[unlikely]] hand_over();
    numbers_.clear();
    nodes_.clear();
    bool has_values = true;
    for (size_t place = 0; place < count; ++place) {
        const BlockObject& block = *as_block(operands[place]);
        const int64_t number =
            place < plan.num_factors ? block.number : placed_number(operands[place]);
        if (number != kNoNumber) numbers_.push_back(number);
        nodes_.push_back(block.node);
        has_values &= block.node != Py_None;
    }
    const int64_t number = issuer_.compute(plan.number, numbers_);
    if (number == Issuer::kNoRoom) raise_out_of_room(plan.type.ptr(), attribute(plan.plan.ptr(), "num_bytes"));
    Ref node = nb::none();
    if (shelf_.carries_data || (has_values && !plan.has_floats)) {
        node = steal(make_node(make, nodes_, source_line()));
    }
    return make_block(program_, self(), plan.type.ptr(), node.ptr(), number, Py_None);
}

PyObject* Desk::command_of(PyObject* plan, const Ref& operands, PyObject* make) {
    note_other();
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(operands.ptr()));
    return command(shelf_.view_of(plan), PySequence_Fast_ITEMS(operands.ptr()), count, make);
}

// --- space

void Desk::release(int64_t number) {
    if (is_over_) return;
    issuer_.release(number);
    const auto held = std::find_if(tiles_.begin(), tiles_.end(),
                                   [number](const Tile& tile) { return tile.number == number; });
    if (held != tiles_.end()) tiles_.erase(held);
}

void Desk::note_tile(int64_t number, PyObject* type, const SourceLine& line) {
    tiles_.push_back({number, borrow(type), borrow(line.code), line.instruction});
}

nb::list Desk::tiles() const {
    nb::list found;
    for (const Tile& tile : tiles_) {
        found.append(nb::make_tuple(tile.type, line_tuple(tile.line_code.ptr(), tile.instruction)));
    }
    return found;
}

void Desk::raise_out_of_room(PyObject* type, const Ref& num_bytes) {
    const Ref error = checked(PyObject_CallMethod(program_, "out_of_tcm", "OO", type,
                                                  num_bytes.ptr()));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    nb::raise_python_error();
}

// --- for Python

namespace {

Ref member_of(Outcome outcome) { return borrow(executor.outcomes[static_cast<int>(outcome)]); }

}  // namespace

int Desk::traverse(visitproc visit, void* arg) {
    Py_VISIT(shelf_object_.ptr());
    Py_VISIT(walker_.ptr());
    Py_VISIT(issuer_object_.ptr());
    Py_VISIT(effects_object_.ptr());
    Py_VISIT(paths_object_.ptr());
    Py_VISIT(order_object_.ptr());
    return 0;
}

void bind_desk(nb::module_& module) {
    nb::class_<PlanShelf>(module, "PlanShelf", nb::type_slots(collected_slots<PlanShelf>))
        .def(nb::init<nb::dict, bool, std::vector<std::pair<int64_t, int64_t>>>())
        .def("take_counts", &PlanShelf::take_counts);
    nb::class_<Desk>(module, "Desk", nb::type_slots(collected_slots<Desk>))
        .def(nb::init<nb::handle, nb::object, nb::object, nb::object, nb::object, nb::object,
                      nb::object>())
        .def("compute",
             [](Desk& desk, nb::handle op, const nb::tuple& operands, const nb::tuple& attributes) {
                 return checked(desk.compute(op.ptr(), operands, attributes));
             },
             nb::arg(), nb::arg(), nb::arg("attributes") = nb::make_tuple())
        .def("command",
             [](Desk& desk, nb::handle plan, const nb::tuple& operands, nb::handle make) {
                 return checked(desk.command_of(plan.ptr(), operands, make.ptr()));
             })
        .def("load",
             [](Desk& desk, nb::handle pointers, nb::handle mask, nb::handle other) {
                 Ref block;
                 const Outcome outcome = desk.load(pointers.ptr(), mask.ptr(), other.ptr(), block);
                 return outcome == Outcome::kIssued ? block : member_of(outcome);
             },
             nb::arg(), nb::arg().none(), nb::arg().none())
        .def("store",
             [](Desk& desk, nb::handle pointers, nb::handle value, nb::handle mask) {
                 return member_of(desk.store(pointers.ptr(), value.ptr(), mask.ptr()));
             },
             nb::arg(), nb::arg(), nb::arg().none())
        .def_rw("piece_end", &Desk::piece_end)
        .def_rw("max_commands", &Desk::max_commands)
        .def_ro("first_command", &Desk::first_command)
        .def_rw("last_read", &Desk::last_read)
        .def_rw("is_composing", &Desk::is_composing)
        .def("pointers",
             [](Desk& desk, int64_t address, nb::handle element, int64_t step) {
                 return checked(pointers_at(desk.program(), address, element.ptr(), step));
             })
        .def("range",
             [](Desk& desk, int64_t start, int64_t end) {
                 return checked(index_range(desk.program(), start, end));
             })
        .def("note_tile",
             [](Desk& desk, int64_t number, nb::handle type, nb::handle code, int instruction) {
                 desk.note_tile(number, type.ptr(), {code.ptr(), instruction});
             })
        .def("tiles", &Desk::tiles)
        .def("release", &Desk::release)
        .def("begin", &Desk::begin)
        .def("begin_anew",
             [](Desk& desk, const nb::tuple& ids) {
                 desk.begin_anew(ids);
                 return true;
             })
        .def("end", &Desk::end);
}

}  // namespace tilewright
