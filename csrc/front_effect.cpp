// Bytes are captured and committed when memory has served them.
#include "front_effect.hpp"

#include <algorithm>
#include <cstring>

#include "front_buffer.hpp"
#include "front_collect.hpp"
#include "front_node.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

// An array of plain bytes under the dtype of the type.
Ref typed(Ref array, const TypeView& type) {
    return type.is_extension ? Ref(array.attr("view")(type.storage)) : array;
}

void fill_items(char* bytes, int64_t count, const Fill& fill, int64_t item_bytes) {
    if (count <= 0) return;
    if (fill == Fill{}) {
        std::memset(bytes, 0, count * item_bytes);
        return;
    }
    const int64_t num_bytes = count * item_bytes;
    std::memcpy(bytes, fill.data(), item_bytes);
    for (int64_t done = item_bytes; done < num_bytes; done *= 2) {  // what is there, once more
        std::memcpy(bytes + done, bytes, std::min(done, num_bytes - done));
    }
}

void strides_of(const Shape& shape, int64_t item_bytes, int64_t* strides) {
    int64_t step = item_bytes;
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
        strides[axis] = step;
        step *= shape.extents[axis];
    }
}

// A whole block whose axes lie in memory in another order, under its own.
Ref permuted(const Ref& in_memory, const Layout& layout, const TypeView& type) {
    const int rank = layout.num_axes;
    int64_t order[kMaxAxes];
    int place = 0;
    for (int axis = 0; axis < layout.box.shape.rank; ++axis) {
        for (int at = 0; at < rank; ++at) {
            if (layout.order[at] == axis) order[place++] = at;
        }
    }
    const nb::object block = in_memory.attr("transpose")(tuple_of(order, rank));
    return rank == layout.box.shape.rank ? block : Ref(block.attr("reshape")(type.shape_tuple));
}

Ref extents_of(const Layout& layout) {
    int64_t extents[kMaxAxes];
    int rank = 0;
    for (const uint8_t axis : layout.axes()) extents[rank++] = layout.extent(axis);
    return tuple_of(extents, rank);
}

bool is_array_of(PyObject* value, const Py_buffer& view, const TypeView& type) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(value)) != language.array) return false;
    if (view.ndim != type.shape.rank || view.itemsize != type.item_bytes) return false;
    return std::equal(view.shape, view.shape + view.ndim, type.shape.extents);
}

}  // namespace

bool can_capture(const Layout& layout) {
    return !layout.box.is_whole() || (layout.flipped == 0 && !layout.shares);
}

int64_t EffectLog::add(nb::object effect, int64_t num_parts, nb::object owner) {
    add_effect(Kind::kOther, std::move(effect), static_cast<size_t>(num_parts), std::move(owner));
    return last_number();
}

int64_t EffectLog::add_capture(PyObject* node, PyObject* owner, const TypeView& type,
                               const Layout& layout, std::span<const Piece> pieces,
                               const Fill& fill) {
    add_access(Kind::kCapture, node, owner, type, layout, pieces).fill = fill;
    return last_number();
}

int64_t EffectLog::add_commit(PyObject* node, PyObject* owner, const TypeView& type,
                              const Layout& layout, std::span<const Piece> pieces) {
    add_access(Kind::kCommit, node, owner, type, layout, pieces);
    return last_number();
}

EffectLog::Effect& EffectLog::add_access(Kind kind, PyObject* node, PyObject* owner,
                                         const TypeView& type, const Layout& layout,
                                         std::span<const Piece> pieces) {
    Effect& effect = add_effect(kind, borrow(node), pieces.size(), borrow(owner));
    std::vector<Piece>& all = chunks_.back()->pieces;
    effect.type = &type;
    effect.layout = layout;
    effect.first_piece = all.size();
    effect.num_pieces = pieces.size();
    all.insert(all.end(), pieces.begin(), pieces.end());
    return effect;
}

EffectLog::Effect& EffectLog::add_effect(Kind kind, nb::object subject, size_t num_parts,
                                         nb::object owner) {
    const size_t place = num_effects_++ % kChunkEffects;
    if (place == 0) chunks_.push_back(std::make_unique_for_overwrite<Chunk>());
    Effect& effect = chunks_.back()->effects[place];
    effect.kind = kind;
    effect.num_parts = num_parts;
    effect.subject = std::move(subject);
    effect.owner = std::move(owner);
    return effect;
}

void EffectLog::apply(const nb::list& served) {
    for (nb::handle row : served) {
        const int64_t number = PyLong_AsLongLong(PyTuple_GET_ITEM(row.ptr(), 1));
        const size_t number_of_chunk = static_cast<size_t>(number) / kChunkEffects;
        Chunk& chunk = *chunks_[number_of_chunk - first_chunk_];
        Effect& effect = chunk.effects[number % kChunkEffects];
        if (--effect.num_parts > 0) continue;
        num_changes_ += apply(effect, chunk, PyTuple_GET_ITEM(row.ptr(), 0));
        effect.subject.reset();
        effect.owner.reset();
        if (++chunk.num_applied == kChunkEffects) drop_applied(number_of_chunk - first_chunk_);
    }
}

// Frees a chunk; the list of chunks is tidied when half of it is gone.
void EffectLog::drop_applied(size_t index) {
    chunks_[index].reset();
    while (num_applied_ < chunks_.size() && chunks_[num_applied_] == nullptr) ++num_applied_;
    if (2 * num_applied_ <= chunks_.size()) return;
    chunks_.erase(chunks_.begin(), chunks_.begin() + static_cast<ptrdiff_t>(num_applied_));
    first_chunk_ += num_applied_;
    num_applied_ = 0;
}

// Only of an access: the fields are not set for other effects.
EffectLog::Access EffectLog::access_of(const Effect& effect, const Chunk& chunk) {
    const std::span pieces(chunk.pieces.data() + effect.first_piece, effect.num_pieces);
    return {effect.type, effect.layout, pieces, effect.fill};
}

// Whether something has changed by it.
bool EffectLog::apply(const Effect& effect, const Chunk& chunk, nb::handle at_ps) {
    try {
        switch (effect.kind) {
            case Kind::kOther: return effect.subject.attr("apply")().ptr() != Py_False;
            case Kind::kCapture:
                settle(effect.subject.ptr(), captured(access_of(effect, chunk)));
                return false;
            case Kind::kCommit: commit(effect.subject.ptr(), access_of(effect, chunk)); break;
        }
        return true;
    } catch (nb::python_error& error) {
        if (error.matches(nb::handle(language.error))) {
            const Ref place = checked(PyUnicode_FromFormat("%S, at %S ps", effect.owner.ptr(), at_ps.ptr()));
            nb::handle(language.add_place)(error.value(), place);
        }
        throw;
    }
}

Ref EffectLog::captured(const Access& access) {
    const Layout& layout = access.layout;
    const TypeView& type = *access.type;
    int64_t first;
    if (layout.box.is_whole() && !layout.is_ordered()) {
        const auto [array, bytes] = empty_array(extents_of(layout), type);
        storages_.read(access.pieces, layout.segment_bytes, bytes);
        return permuted(typed(array, type), layout, type);
    }
    const auto [array, bytes] = arrays_.take(type);
    const int64_t item = type.item_bytes, count = layout.num_bytes / item;
    const int64_t num_elements = type.num_bytes / item;
    if (layout.is_ordered() && layout.is_run(first)) {
        fill_items(bytes, first, access.fill, item);
        char* end = bytes + (first + count) * item;
        fill_items(end, num_elements - first - count, access.fill, item);
        storages_.read(access.pieces, layout.segment_bytes, bytes + first * item);
    } else {
        int64_t strides[kMaxAxes];
        strides_of(type.shape, item, strides);
        fill_items(bytes, num_elements, access.fill, item);
        data_.resize(layout.num_bytes);
        storages_.read(access.pieces, layout.segment_bytes, data_.data());
        scatter(layout, data_.data(), bytes, strides);
    }
    return typed(array, type);
}

void EffectLog::commit(PyObject* node, const Access& access) {
    const Layout& layout = access.layout;
    const TypeView& type = *access.type;
    Ref value = borrow(evaluate(node, &arrays_));
    if (type.is_extension) value = value.attr("view")(type.plain);
    std::unique_ptr<Buffer> buffer;
    if (reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())) == language.array) {
        buffer = std::make_unique<Buffer>(value.ptr(), PyBUF_STRIDES);
    }
    if (buffer == nullptr || !is_array_of(value.ptr(), buffer->view(), type)) {
        // a scalar of NumPy, or an array that has to be spread
        value = nb::handle(language.spread)(value, type.shape_tuple, type.plain);
        buffer = std::make_unique<Buffer>(value.ptr(), PyBUF_STRIDES);
    }
    int64_t first;
    const bool is_run = layout.is_ordered() && layout.is_run(first) &&
                        PyBuffer_IsContiguous(&buffer->view(), 'C');
    if (is_run) {
        storages_.write(access.pieces, layout.segment_bytes,
                        buffer->bytes() + first * type.item_bytes);
        return;
    }
    data_.resize(layout.num_bytes);
    const std::vector<int64_t> strides(buffer->view().strides,
                                       buffer->view().strides + type.shape.rank);
    gather(layout, buffer->bytes(), strides.data(), data_.data());
    storages_.write(access.pieces, layout.segment_bytes, data_.data());
}

int EffectLog::traverse(visitproc visit, void* arg) {
    for (const auto& chunk : chunks_) {
        if (chunk == nullptr) continue;
        for (const Effect& effect : chunk->effects) {
            Py_VISIT(effect.subject.ptr());
            Py_VISIT(effect.owner.ptr());
        }
    }
    return storages_.traverse(visit, arg);
}

void bind_effects(nb::module_& module) {
    nb::class_<EffectLog>(module, "EffectLog", nb::type_slots(collected_slots<EffectLog>))
        .def(nb::init<nb::list>())
        .def_prop_ro("num_changes", &EffectLog::num_changes)
        .def("add", &EffectLog::add, nb::arg(), nb::arg(), nb::arg("owner") = "a kernel")
        .def("apply", nb::overload_cast<const nb::list&>(&EffectLog::apply));
}

}  // namespace tilewright
