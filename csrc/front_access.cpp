// Loads and stores at known addresses; language/dma.py is the same in Python, and does all others.
#include "front_desk.hpp"
#include "front_layout.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

constexpr int64_t kNoRoom = -1;
constexpr int64_t kNoValue = -1;

bool is_number(PyObject* value) { return PyLong_Check(value) || PyFloat_Check(value); }

}  // namespace

// Addresses and mask of one shape, and some place to access; false: Python finds out what it is.
bool Desk::aim(PyObject* pointers, PyObject* mask, Target& target) const {
    if (!is_pointers(pointers) || (mask != Py_None && !is_mask(mask))) return false;
    const PointersObject& addresses = *as_pointers(pointers);
    if (addresses.offsets != Py_None || addresses.element == language.int4) return false;
    target.form = addresses.form;
    if (mask == Py_None) {
        target.box = Region::whole(target.form.shape);
        return true;
    }
    const Region& region = as_mask(mask)->region;
    Shape shape;
    if (target.form.shape.rank == 0 && region.shape.rank > 0) return false;
    if (!broadcast_shapes(target.form.shape, region.shape, shape)) return false;
    target.form = target.form.broadcast(shape);
    target.box = region.broadcast(shape);
    return !target.box.is_empty();
}

// Fills in where an access goes; false if a page is not mapped.
bool Desk::reach(const Layout& layout, bool is_write) {
    pieces_.clear();
    accesses_.clear();
    after_.clear();
    if (!paths_.find_pieces(spans_, pieces_)) return false;
    const int64_t command = issuer_.num_commands() + 1;
    if (is_write) {
        order_.before_write(spans_, command, after_);
    } else {
        order_.before_read(spans_, command, after_);
    }
    for (const Piece& piece : pieces_) {
        const int64_t trip = paths_.trip(program_, piece.memory, is_write);
        accesses_.push_back({trip, piece.num_segments, piece.num_bytes, piece.stride_bytes,
                             piece.address, piece.walk_ps});
    }
    (is_write ? shelf_.stored_bytes : shelf_.loaded_bytes) += layout.num_bytes;
    return true;
}

PyObject* Desk::load(PyObject* pointers, PyObject* mask, PyObject* other) {
    Target target;
    if (!aim(pointers, mask, target)) return counted(Py_None);
    if (other != Py_None && !is_number(other)) return counted(Py_None);
    if (issuer_.num_commands() >= piece_end) return counted(Py_False);
    PyObject* type = block_type_of(as_pointers(pointers)->element, target.form.shape);
    const TypeView& view = type_view(type);
    const bool carries = shelf_.carries_data || !view.is_floating;
    spans_.clear();
    Layout layout(target.form, target.box, as_pointers(pointers)->step, spans_);
    if (carries && !can_capture(layout)) return counted(Py_None);
    if (!reach(layout, false)) return counted(Py_None);
    const SourceLine line = source_line();
    Ref node = nb::none();
    int64_t served = kNoEffect;
    if (carries) {
        node = steal(make_node(language.not_captured, PyTuple_New(0), line));
        served = effects_.add_capture(node.ptr(), program_, view, std::move(layout), pieces_,
                                      shelf_.fill(program_, other, view.dtype.ptr()));
    }
    const int64_t command = issuer_.num_commands() + 1;
    const int64_t number = issuer_.load(view.num_bytes, accesses_, after_, served);
    if (number == kNoRoom) raise_out_of_room(type, nb::int_(view.num_bytes));
    order_.note_read(spans_, command, issuer_.task_of(number));
    note_tile(number, type, line);
    ++shelf_.num_loads;
    return make_block(program_, self(), type, node.ptr(), number, Py_None);
}

PyObject* Desk::store(PyObject* pointers, PyObject* value, PyObject* mask) {
    Target target;
    if (!is_block(value) || !aim(pointers, mask, target)) return counted(Py_None);
    const BlockObject& block = *as_block(value);
    const TypeView& view = type_view(block.type);
    if (view.dtype.ptr() != as_pointers(pointers)->element || !(view.shape == target.form.shape)) {
        return counted(Py_None);
    }
    if (issuer_.num_commands() >= piece_end) return counted(Py_False);
    const bool carries =
        block.node != Py_None && (shelf_.carries_data || !view.is_floating);
    spans_.clear();
    Layout layout(target.form, target.box, as_pointers(pointers)->step, spans_);
    const int64_t num_bytes = layout.num_bytes;
    if (!reach(layout, true)) return counted(Py_None);
    int64_t served = kNoEffect;
    if (carries) {
        served = effects_.add_commit(block.node, program_, view, std::move(layout), pieces_);
    }
    const int64_t number = block.number == kNoNumber ? kNoValue : block.number;
    const int64_t command = issuer_.num_commands() + 1;
    const int64_t task = issuer_.store(number, num_bytes, accesses_, after_, served);
    if (task == kNoRoom) raise_out_of_room(block.type, nb::int_(num_bytes));
    order_.note_write(spans_, command, task);
    ++shelf_.num_stores;
    return counted(Py_True);
}

}  // namespace tilewright
