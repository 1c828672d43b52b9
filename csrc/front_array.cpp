// Arrays that captures fill.
#include "front_array.hpp"

#include "front_buffer.hpp"

namespace tilewright {

ArrayPool::Taken ArrayPool::take(const TypeView& type) {
    Shelf& shelf = shelves_[&type];
    for (int tries = 0; tries < kTries && !shelf.arrays.empty(); ++tries) {
        const Taken& oldest = shelf.arrays[shelf.next];
        shelf.next = (shelf.next + 1) % shelf.arrays.size();
        if (Py_REFCNT(oldest.array.ptr()) == 1) return oldest;  // no view of it is left either
    }
    Taken made = empty_array(type.shape_tuple, type);
    if (num_bytes_ + type.num_bytes <= kMaxBytes) {
        num_bytes_ += type.num_bytes;
        shelf.arrays.push_back(made);
    }
    return made;
}

ArrayPool::Taken empty_array(const Ref& shape, const TypeView& type) {
    PyObject* parts[] = {shape.ptr(), type.plain.ptr()};
    Ref array = checked(PyObject_Vectorcall(language.empty, parts, 2, nullptr));
    char* bytes = Buffer(array.ptr(), PyBUF_WRITABLE).bytes();
    return {std::move(array), bytes};
}

}  // namespace tilewright
