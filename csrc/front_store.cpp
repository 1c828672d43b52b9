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
      arena_shift_(nb::cast<int>(store_.attr("arena_shift"))) {}

Storage::~Storage() {
    for (auto& [number, arena] : arenas_) PyBuffer_Release(&arena.view);
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
        const int64_t part = std::min(num_bytes, arena_bytes - inside);
        const char* bytes = arena(address >> arena_shift_, false);
        if (bytes == nullptr) {
            std::memset(out, 0, part);
        } else {
            std::memcpy(out, bytes + inside, part);
        }
        address += part;
        out += part;
        num_bytes -= part;
    }
}

void Storage::write_plain(int64_t address, int64_t num_bytes, const char* data) {
    check(address, num_bytes);
    const int64_t arena_bytes = int64_t{1} << arena_shift_;
    while (num_bytes > 0) {
        const int64_t inside = address & (arena_bytes - 1);
        const int64_t part = std::min(num_bytes, arena_bytes - inside);
        std::memcpy(arena(address >> arena_shift_, true) + inside, data, part);
        address += part;
        data += part;
        num_bytes -= part;
    }
}

char* Storage::arena(int64_t number, bool makes) {
    if (number == last_number_) return last_bytes_;
    auto known = arenas_.find(number);
    if (known == arenas_.end()) {
        const nb::object made = store_.attr("arena")(number, makes);
        if (made.is_none()) return nullptr;
        Arena arena{};
        if (PyObject_GetBuffer(made.ptr(), &arena.view, PyBUF_WRITABLE) < 0) {
            nb::raise_python_error();
        }
        arena.bytes = static_cast<char*>(arena.view.buf);
        known = arenas_.emplace(number, arena).first;
    }
    last_number_ = number;
    last_bytes_ = known->second.bytes;
    return last_bytes_;
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
