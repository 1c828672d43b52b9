// What happens to memory at simulated times; executor/effect.py is the same in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "front_array.hpp"
#include "front_layout.hpp"
#include "front_path.hpp"
#include "front_store.hpp"

namespace tilewright {

// Bytes of one element, for the places outside of a box.
using Fill = std::array<char, 8>;

// Numbers effects for the engine, and applies them when it reports them, in its order.
class EffectLog {
  public:
    explicit EffectLog(nanobind::list memories) : storages_(std::move(memories)) {}
    EffectLog(const EffectLog&) = delete;

    // The number that each of the tasks of a command reports when it has been served.
    int64_t add(nanobind::object effect, int64_t num_parts, nanobind::object owner);
    int64_t add_capture(PyObject* node, PyObject* owner, const TypeView& type,
                        const Layout& layout, std::span<const Piece> pieces, const Fill& fill);
    int64_t add_commit(PyObject* node, PyObject* owner, const TypeView& type, const Layout& layout,
                       std::span<const Piece> pieces);

    ArrayPool& arrays() { return arrays_; }

    // All that was served since the last time, in event order.
    void apply(const nanobind::list& served);
    // How many of them have changed something.
    int64_t num_changes() const { return num_changes_; }

    int traverse(visitproc visit, void* arg);
    void clear() {
        chunks_.clear();
        arrays_.clear();
        storages_.clear();
    }

  private:
    enum class Kind { kOther, kCapture, kCommit };

    struct Effect {
        Kind kind;
        size_t num_parts;  // that are not served yet
        Ref subject;  // the node of an access; else the effect itself
        Ref owner;    // what an error in the effect names: the title of a program
        // of an access
        const TypeView* type;
        Layout layout;
        Fill fill;
        size_t first_piece, num_pieces;  // of its chunk's
    };

    // Neighbours, since a program runs far ahead: one allocation for many effects.
    struct Chunk {
        std::array<Effect, 64> effects;
        std::vector<Piece> pieces;
        size_t num_applied = 0;
    };
    static constexpr size_t kChunkEffects = std::tuple_size_v<decltype(Chunk::effects)>;

    struct Access {  // one that is applied
        const TypeView* type;
        const Layout& layout;
        std::span<const Piece> pieces;
        const Fill& fill;
    };

    Effect& add_effect(Kind kind, nanobind::object subject, size_t num_parts,
                       nanobind::object owner);
    Effect& add_access(Kind kind, PyObject* node, PyObject* owner, const TypeView& type,
                       const Layout& layout, std::span<const Piece> pieces);
    static Access access_of(const Effect& effect, const Chunk& chunk);
    int64_t last_number() const { return static_cast<int64_t>(num_effects_) - 1; }
    bool apply(const Effect& effect, const Chunk& chunk, nanobind::handle at_ps);
    void commit(PyObject* node, const Access& access);
    Ref captured(const Access& access);
    void drop_applied(size_t index);

    Storages storages_;
    std::vector<std::unique_ptr<Chunk>> chunks_;  // nullptr once all of it is applied
    size_t first_chunk_ = 0;  // those before it were dropped
    size_t num_applied_ = 0;  // of the chunks that are left, the first ones
    size_t num_effects_ = 0;
    int64_t num_changes_ = 0;
    ArrayPool arrays_;
    std::vector<char> data_;  // kept for its memory
};

// Whether a capture of such bytes makes the array that Python would, strides included.
bool can_capture(const Layout& layout);

void bind_effects(nanobind::module_& module);

}  // namespace tilewright
