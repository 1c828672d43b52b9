// Bytes are captured and committed when memory has served them.
#include "front_effect.hpp"

#include <cstring>

#include "front_buffer.hpp"
#include "front_collect.hpp"
#include "front_node.hpp"

namespace nb = nanobind;

namespace tilewright {

namespace {

Ref empty_array(const Ref& shape, const TypeView& type) {
    PyObject* parts[] = {shape.ptr(), type.plain.ptr()};
    return checked(PyObject_Vectorcall(language.empty, parts, 2, nullptr));
}

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
    for (int64_t place = 0; place < count; ++place) {
        std::memcpy(bytes + place * item_bytes, fill.data(), item_bytes);
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
    const auto rank = static_cast<int>(layout.axes.size());
    int64_t order[kMaxAxes];
    int place = 0;
    for (int axis = 0; axis < layout.box.shape.rank; ++axis) {
        for (int at = 0; at < rank; ++at) {
            if (layout.axes[at].axis == axis) order[place++] = at;
        }
    }
    const nb::object block = in_memory.attr("transpose")(tuple_of(order, rank));
    return rank == layout.box.shape.rank ? block : Ref(block.attr("reshape")(type.shape_tuple));
}

Ref extents_of(const Layout& layout) {
    int64_t extents[kMaxAxes];
    for (size_t place = 0; place < layout.axes.size(); ++place) {
        extents[place] = layout.axes[place].extent;
    }
    return tuple_of(extents, static_cast<int>(layout.axes.size()));
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
    effects_.push_back(std::make_unique<Effect>(
        Effect{num_parts, std::move(effect), std::move(owner), nullptr}));
    return static_cast<int64_t>(effects_.size()) - 1;
}

int64_t EffectLog::add_capture(PyObject* node, PyObject* owner, const TypeView& type,
                               Layout layout, std::vector<Piece> pieces, const Fill& fill) {
    return add_access(node, owner, {&type, std::move(layout), std::move(pieces), fill, false});
}

int64_t EffectLog::add_commit(PyObject* node, PyObject* owner, const TypeView& type, Layout layout,
                              std::vector<Piece> pieces) {
    return add_access(node, owner, {&type, std::move(layout), std::move(pieces), {}, true});
}

int64_t EffectLog::add_access(PyObject* node, PyObject* owner, Access access) {
    const auto num_parts = static_cast<int64_t>(access.pieces.size());
    const int64_t number = add(borrow(node), num_parts, borrow(owner));
    effects_.back()->access = std::make_unique<Access>(std::move(access));
    return number;
}

void EffectLog::apply(const nb::list& served) {
    for (nb::handle row : served) {
        const int64_t number = PyLong_AsLongLong(PyTuple_GET_ITEM(row.ptr(), 1));
        if (--effects_[number]->num_parts > 0) continue;
        const std::unique_ptr<Effect> effect = std::move(effects_[number]);
        apply(*effect, PyTuple_GET_ITEM(row.ptr(), 0));
    }
}

void EffectLog::apply(Effect& effect, nb::handle at_ps) {
    try {
        if (effect.access == nullptr) {
            effect.subject.attr("apply")();
        } else if (effect.access->is_commit) {
            commit(effect.subject.ptr(), *effect.access);
        } else {
            capture(effect.subject.ptr(), *effect.access);
        }
    } catch (nb::python_error& error) {
        if (error.matches(nb::handle(language.error))) {
            const Ref place = checked(PyUnicode_FromFormat("%S, at %S ps", effect.owner.ptr(), at_ps.ptr()));
            nb::handle(language.add_place)(error.value(), place);
        }
        throw;
    }
}

void EffectLog::capture(PyObject* node, const Access& access) { settle(node, captured(access)); }

Ref EffectLog::captured(const Access& access) {
    const Layout& layout = access.layout;
    const TypeView& type = *access.type;
    int64_t first;
    if (layout.box.is_whole() && !layout.is_ordered()) {
        const Ref array = empty_array(extents_of(layout), type);
        const Buffer buffer(array.ptr(), PyBUF_WRITABLE);
        storages_.read(access.pieces, layout.segment_bytes, buffer.bytes());
        return permuted(typed(array, type), layout, type);
    }
    const Ref array = empty_array(type.shape_tuple, type);
    const Buffer buffer(array.ptr(), PyBUF_WRITABLE);
    const int64_t item = type.item_bytes, count = layout.num_bytes / item;
    const int64_t num_elements = buffer.view().len / item;
    if (layout.is_ordered() && layout.is_run(first)) {
        fill_items(buffer.bytes(), first, access.fill, item);
        char* end = buffer.bytes() + (first + count) * item;
        fill_items(end, num_elements - first - count, access.fill, item);
        storages_.read(access.pieces, layout.segment_bytes, buffer.bytes() + first * item);
    } else {
        int64_t strides[kMaxAxes];
        strides_of(type.shape, item, strides);
        fill_items(buffer.bytes(), num_elements, access.fill, item);
        data_.resize(layout.num_bytes);
        storages_.read(access.pieces, layout.segment_bytes, data_.data());
        scatter(layout, data_.data(), buffer.bytes(), strides);
    }
    return typed(array, type);
}

void EffectLog::commit(PyObject* node, const Access& access) {
    const Layout& layout = access.layout;
    const TypeView& type = *access.type;
    Ref value = borrow(evaluate(node));
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
    for (const auto& effect : effects_) {
        if (effect == nullptr) continue;
        Py_VISIT(effect->subject.ptr());
        Py_VISIT(effect->owner.ptr());
    }
    return storages_.traverse(visit, arg);
}

void bind_effects(nb::module_& module) {
    nb::class_<EffectLog>(module, "EffectLog", nb::type_slots(collected_slots<EffectLog>))
        .def(nb::init<nb::list>())
        .def("add", &EffectLog::add, nb::arg(), nb::arg(), nb::arg("owner") = "a kernel")
        .def("apply", nb::overload_cast<const nb::list&>(&EffectLog::apply));
}

}  // namespace tilewright
