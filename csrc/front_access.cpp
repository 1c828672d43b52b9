// Loads and stores; executor/dma.py is the same in Python, and does those that are not done here.
#include "front_desk.hpp"
#include "front_layout.hpp"

namespace nb = nanobind;

namespace tilewright {

// Addresses and mask of one shape, and some place to access; false: Python finds out what it is.
bool Desk::aim(PyObject* pointers, PyObject* mask, Target& target) const {
    if (!is_pointers(pointers) || (mask != Py_None && !is_mask(mask))) return false;
    const PointersObject& addresses = *as_pointers(pointers);
    if (addresses.element == language.int4) return false;
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

// Fills in where a known access goes; false if a page is not mapped.
bool Desk::reach(bool is_write) {
    pieces_.clear();
    if (!paths_.find_pieces(spans_, asker(), pieces_)) return false;
    follow(is_write);
    return true;
}

// Fills in where items go, as one long segment whose parts lie anywhere; likewise.
bool Desk::reach_items(bool is_write) {
    const auto& [addresses, item_bytes] = items_;
    spans_.clear();
    pieces_.clear();
    for (size_t place = 0; place < addresses.size();) {
        const size_t first = place++;
        while (place < addresses.size() && addresses[place] - addresses[place - 1] == item_bytes) {
            ++place;
        }
        const int64_t num_bytes = static_cast<int64_t>(place - first) * item_bytes;
        spans_.push_back({addresses[first], 1, num_bytes, num_bytes});
        const size_t num_before = pieces_.size();
        if (!paths_.find_pieces({&spans_.back(), 1}, asker(), pieces_)) return false;
        for (size_t each = num_before; each < pieces_.size(); ++each) {
            pieces_[each].skip_bytes += static_cast<int64_t>(first) * item_bytes;
        }
    }
    follow(is_write);
    return true;
}

// What the issuer is told of spans and pieces.
void Desk::follow(bool is_write) {
    after_.clear();
    accesses_.clear();
    const int64_t command = issuer_.num_commands() + 1;
    if (is_write) {
        order_.before_write(spans_, command, after_);
    } else {
        order_.before_read(spans_, command, after_);
    }
    const int64_t channel = paths_.take_channel(is_write);
    for (const Piece& piece : pieces_) {
        const int64_t trip = paths_.trip(program_, piece.memory, is_write, channel);
        accesses_.push_back({trip, piece.num_segments, piece.num_bytes, piece.stride_bytes,
                             piece.address, piece.walk});
    }
}

Outcome Desk::load(PyObject* pointers, PyObject* mask, PyObject* other, Ref& block) {
    note_other();
    Target target;
    if (!aim(pointers, mask, target)) return Outcome::kUnsupported;
    if (other != Py_None && !is_number(other)) return Outcome::kUnsupported;
    const PointersObject& addresses = *as_pointers(pointers);
    const bool is_gather = addresses.offsets != Py_None;
    if (is_gather && !is_there(addresses.offsets)) return Outcome::kOffsetsPending;
    if (is_full()) return Outcome::kBatchFull;
    PyObject* type = block_type_of(addresses.element, target.form.shape);
    if (is_gather) {
        const Layout layout(target.box, addresses.step);
        if (!find_items(addresses, target, mask != Py_None) || !reach_items(false)) {
            return Outcome::kUnsupported;
        }
        ++shelf_.num_gathers;
        block = checked(issue_load(type, layout, other));
        return Outcome::kIssued;
    }
    spans_.clear();
    const Layout layout(target.form, target.box, addresses.step, spans_);
    if (carries(type) && !can_capture(layout)) return Outcome::kUnsupported;
    if (!reach(false)) return Outcome::kUnsupported;
    block = checked(issue_load(type, layout, other));
    return Outcome::kIssued;
}

// As Program._await, if no time has to pass (ADR 0008).
bool Desk::is_there(PyObject* value) {
    note_other();
    static PyObject* runs_ahead = PyUnicode_InternFromString("runs_ahead");
    BlockObject& block = *as_block(value);
    if (block.is_there) return true;
    if (block.node == Py_None || !is_determined(block.node)) return false;
    if (block.number != kNoNumber || block.transposing != Py_None) {
        if (checked(PyObject_GetAttr(program_, runs_ahead)).ptr() != Py_True) return false;
        issuer_.stall(issuer_.task_of(placed_number(value)));
    }
    evaluate(block.node, &effects_.arrays());
    block.is_there = true;
    return true;
}

bool Desk::find_items(const PointersObject& addresses, const Target& target, bool is_masked) {
    const BlockObject& offsets = *as_block(addresses.offsets);
    if (type_view(offsets.type).is_extension) return false;
    return list_items(target.form, target.box, is_masked, addresses.step,
                      as_node(offsets.node)->value, items_);
}

bool Desk::carries(PyObject* type) const {
    return shelf_.carries_data || !type_view(type).is_floating;
}

PyObject* Desk::issue_load(PyObject* type, const Layout& layout, PyObject* other) {
    const TypeView& view = type_view(type);
    const SourceLine line = source_line();
    Ref node = nb::none();
    int64_t served = kNoEffect;
    shelf_.loaded_bytes += layout.num_bytes;
    if (carries(type)) {
        node = steal(make_node(language.not_captured, {}, line));
        served = effects_.add_capture(node.ptr(), title_.ptr(), view, layout, pieces_,
                                      shelf_.fill(program_, other, view.dtype.ptr()));
    }
    const int64_t command = issuer_.num_commands() + 1;
    const int64_t number = issuer_.load(view.num_bytes, accesses_, after_, served);
    if (number == Issuer::kNoRoom) raise_out_of_room(type, nb::int_(view.num_bytes));
    order_.note_read(spans_, command, issuer_.task_of(number));
    last_read = spans_.front().address;
    note_tile(number, type, line);
    ++shelf_.num_loads;
    return make_block(program_, self(), type, node.ptr(), number, Py_None);
}

Outcome Desk::store(PyObject* pointers, PyObject* value, PyObject* mask) {
    note_other();
    Target target;
    if (!is_block(value) || !aim(pointers, mask, target)) return Outcome::kUnsupported;
    if (as_pointers(pointers)->offsets != Py_None) return Outcome::kUnsupported;
    const BlockObject& block = *as_block(value);
    const TypeView& view = type_view(block.type);
    if (view.dtype.ptr() != as_pointers(pointers)->element || !(view.shape == target.form.shape)) {
        return Outcome::kUnsupported;
    }
    const int64_t value_number = placed_number(value);  // before commands are counted
    if (is_full()) return Outcome::kBatchFull;
    spans_.clear();
    const Layout layout(target.form, target.box, as_pointers(pointers)->step, spans_);
    const int64_t num_bytes = layout.num_bytes;
    if (shelf_.has_copies(spans_) || !reach(true)) return Outcome::kUnsupported;
    shelf_.stored_bytes += num_bytes;
    int64_t served = kNoEffect;
    if (block.node != Py_None && carries(block.type)) {
        served = effects_.add_commit(block.node, title_.ptr(), view, layout, pieces_);
    }
    const int64_t number = value_number == kNoNumber ? Issuer::kNoValue : value_number;
    const int64_t command = issuer_.num_commands() + 1;
    const int64_t task = issuer_.store(number, num_bytes, accesses_, after_, served);
    if (task == Issuer::kNoRoom) raise_out_of_room(block.type, nb::int_(num_bytes));
    order_.note_write(spans_, command, task);
    ++shelf_.num_stores;
    return Outcome::kIssued;
}

namespace {

// The desk of the program whose addresses these are; nullptr if it issues no accesses now.
Desk* desk_of_access(PyObject* pointers) {
    if (!is_pointers(pointers)) return nullptr;
    Desk* desk = Desk::of(as_pointers(pointers)->program);
    return desk != nullptr && !desk->is_composing && desk->is_idle() ? desk : nullptr;
}

}  // namespace

Outcome known_load(PyObject* pointers, PyObject* mask, PyObject* other, Ref& block) {
    Desk* desk = desk_of_access(pointers);
    if (desk == nullptr || (other != Py_None && mask == Py_None)) return Outcome::kUnsupported;
    return desk->load(pointers, mask, other, block);
}

Outcome known_store(PyObject* pointers, PyObject* value, PyObject* mask) {
    Desk* desk = desk_of_access(pointers);
    return desk == nullptr ? Outcome::kUnsupported : desk->store(pointers, value, mask);
}

}  // namespace tilewright
