// The bytes of memories; memory/store.py owns them, and makes them as they are written.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "front_path.hpp"

namespace tilewright {

class Storage {
  public:
    explicit Storage(nanobind::object store);  // a ByteStore
    Storage(Storage&&) = default;
    ~Storage();

    void read(int64_t address, int64_t num_bytes, char* out);
    void write(int64_t address, int64_t num_bytes, const char* data);
    PyObject* store() const { return store_.ptr(); }

  private:
    struct Arena {
        char* bytes;
        const char* flags;  // of its chunks: memory/store_arena.py
        Py_buffer view, flags_view;
    };

    void read_plain(int64_t address, int64_t num_bytes, char* out);
    void write_plain(int64_t address, int64_t num_bytes, const char* data);
    const Arena* arena(int64_t number, bool makes);  // nullptr for one that is all zero
    bool is_filled(const Arena& arena, int64_t inside) const {
        return arena.flags[0] != 0 && arena.flags[1 + inside / chunk_bytes_] != 0;
    }
    void read_word(int64_t address, int64_t num_bytes, char* out) const;
    void check(int64_t address, int64_t num_bytes) const;

    nanobind::object store_;
    bool is_plain_;  // nobody keeps track of what is written
    int64_t capacity_bytes_;
    int arena_shift_;
    int64_t chunk_bytes_;
    int64_t last_number_ = -1;
    const Arena* last_arena_ = nullptr;
    std::unordered_map<int64_t, Arena> arenas_;
};

// The memories of a device, which may become more.
class Storages {
  public:
    explicit Storages(nanobind::list memories) : memories_(std::move(memories)) {}

    // Segments of an access, from and to the memories that hold them.
    void read(std::span<const Piece> pieces, int64_t segment_bytes, char* out);
    void write(std::span<const Piece> pieces, int64_t segment_bytes, const char* data);

    int traverse(visitproc visit, void* arg) const;
    void clear();

  private:
    Storage& at(int64_t memory);

    nanobind::list memories_;
    std::vector<Storage> storages_;
};

}  // namespace tilewright
