// Copies between arrays and the arenas of memories.
#include "front_store.hpp"

#include <algorithm>
#include <cstring>

namespace nb = nanobind;

namespace tilewright {

Storage::Storage(nb::object store)
    : store_(std::move(store)),
      is_plain_(nb::cast<bool>(store_.attr("is_plain"))),
      capacity_bytes_(nb::cast<int64_t>(store_.attr("capacity_bytes"))),
      arena_shift_(nb::cast<int>(store_.attr("arena_shift"))),
      chunk_bytes_(nb::cast<int64_t>(store_.attr("chunk_bytes"))) {}

Storage::~Storage() {
    for (auto& [number, arena] : arenas_) {
        PyBuffer_Release(&arena.view);
        PyBuffer_Release(&arena.flags_view);
    }
}

void Storage::read(int64_t address, int64_t num_bytes, char* out) {
    if (is_plain_) return read_plain(address, num_bytes, out);
    const nb::object bytes = store_.attr("read")(address, num_bytes).attr("tobytes")();
    std::memcpy(out, PyBytes_AsString(bytes.ptr()), num_bytes);
}

void Storage::write(int64_t address, int64_t num_bytes, const char* data) {
    if (is_plain_) return write_plain(address, num_bytes, data);
    store_.attr("write")(address, nb::bytes(data, num_bytes));
}

void Storage::read_plain(int64_t address, int64_t num_bytes, char* out) {
    check(address, num_bytes);
    const int64_t arena_bytes = int64_t{1} << arena_shift_;
    while (num_bytes > 0) {
        const int64_t inside = address & (arena_bytes - 1);
        const Arena* found = arena(address >> arena_shift_, false);
        const bool has_words = found != nullptr && found->flags[0] != 0;
        const int64_t room = has_words ? chunk_bytes_ - inside % chunk_bytes_ : arena_bytes - inside;
        const int64_t part = std::min(num_bytes, room);
        if (found == nullptr) {
            std::memset(out, 0, part);
        } else if (is_filled(*found, inside)) {
            read_word(address, part, out);
        } else {
            std::memcpy(out, found->bytes + inside, part);
        }
        address += part;
        out += part;
        num_bytes -= part;
    }
}

// Bytes of one chunk that is a word, again and again.
void Storage::read_word(int64_t address, int64_t num_bytes, char* out) const {
    const nb::object found = store_.attr("word_at")(address);
    const char* word = PyBytes_AsString(found.ptr());
    const int64_t size = PyBytes_Size(found.ptr());
    for (int64_t place = 0; place < std::min(size, num_bytes); ++place) {
        out[place] = word[(address + place) % size];
    }
    for (int64_t done = size; done < num_bytes; done *= 2) {  // what is there, once more
        std::memcpy(out + done, out, std::min(done, num_bytes - done));
    }
}

void Storage::write_plain(int64_t address, int64_t num_bytes, const char* data) {
    check(address, num_bytes);
    const int64_t arena_bytes = int64_t{1} << arena_shift_;
    while (num_bytes > 0) {
        const int64_t inside = address & (arena_bytes - 1);
        const Arena* found = arena(address >> arena_shift_, true);
        const bool has_words = found->flags[0] != 0;
        const int64_t room = has_words ? chunk_bytes_ - inside % chunk_bytes_ : arena_bytes - inside;
        const int64_t part = std::min(num_bytes, room);
        if (is_filled(*found, inside)) store_.attr("write_out")(address);
        std::memcpy(found->bytes + inside, data, part);
        address += part;
        data += part;
        num_bytes -= part;
    }
}

const Storage::Arena* Storage::arena(int64_t number, bool makes) {
    if (number == last_number_) return last_arena_;
    auto known = arenas_.find(number);
    if (known == arenas_.end()) {
        const nb::object made = store_.attr("arena")(number, makes);
        if (made.is_none()) return nullptr;
        const nb::object flags = store_.attr("flags_of")(number);
        Arena arena{};
        if (PyObject_GetBuffer(made.ptr(), &arena.view, PyBUF_WRITABLE) < 0 ||
            PyObject_GetBuffer(flags.ptr(), &arena.flags_view, PyBUF_SIMPLE) < 0) {
            nb::raise_python_error();
        }
        arena.bytes = static_cast<char*>(arena.view.buf);
        arena.flags = static_cast<const char*>(arena.flags_view.buf);
        known = arenas_.emplace(number, arena).first;
    }
    last_number_ = number;
    last_arena_ = &known->second;
    return last_arena_;
}

// An access outside of the memory is refused in the store's own words.
void Storage::check(int64_t address, int64_t num_bytes) const {
    if (address < 0 || address + num_bytes > capacity_bytes_) {
        store_.attr("read")(address, num_bytes);
    }
}

Storage& Storages::at(int64_t memory) {
    while (static_cast<int64_t>(storages_.size()) <= memory) {
        storages_.emplace_back(nb::object(memories_[storages_.size()].attr("storage")));
    }
    return storages_[memory];
}

void Storages::read(std::span<const Piece> pieces, int64_t segment_bytes, char* out) {
    for (const Piece& piece : pieces) {
        char* to = out + piece.first_segment * segment_bytes + piece.skip_bytes;
        Storage& storage = at(piece.memory);
        for (int64_t place = 0; place < piece.num_segments; ++place) {
            storage.read(piece.address + place * piece.stride_bytes, piece.num_bytes,
                         to + place * segment_bytes);
        }
    }
}

void Storages::write(std::span<const Piece> pieces, int64_t segment_bytes, const char* data) {
    for (const Piece& piece : pieces) {
        const char* from = data + piece.first_segment * segment_bytes + piece.skip_bytes;
        Storage& storage = at(piece.memory);
        for (int64_t place = 0; place < piece.num_segments; ++place) {
            storage.write(piece.address + place * piece.stride_bytes, piece.num_bytes,
                          from + place * segment_bytes);
        }
    }
}

int Storages::traverse(visitproc visit, void* arg) const {
    Py_VISIT(memories_.ptr());
    for (const Storage& storage : storages_) Py_VISIT(storage.store());
    return 0;
}

void Storages::clear() {
    storages_.clear();
    memories_ = nb::list();
}

}  // namespace tilewright
