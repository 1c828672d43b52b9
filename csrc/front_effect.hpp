// What happens to memory at simulated times; language/effect.py is the same in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

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
    int64_t add_capture(PyObject* node, PyObject* owner, const TypeView& type, Layout layout,
                        std::vector<Piece> pieces, const Fill& fill);
    int64_t add_commit(PyObject* node, PyObject* owner, const TypeView& type, Layout layout,
                       std::vector<Piece> pieces);

    // All that was served since the last time, in event order.
    void apply(const nanobind::list& served);

    int traverse(visitproc visit, void* arg);
    void clear() {
        effects_.clear();
        storages_.clear();
    }

  private:
    struct Access {
        const TypeView* type;
        Layout layout;
        std::vector<Piece> pieces;
        Fill fill;
        bool is_commit;
    };

    struct Effect {
        int64_t num_parts;
        Ref subject;  // the node of an access; else the effect itself
        Ref owner;    // what an error in the effect names: the title of a program
        std::unique_ptr<Access> access;
    };

    int64_t add_access(PyObject* node, PyObject* owner, Access access);
    void apply(Effect& effect, nanobind::handle at_ps);
    void capture(PyObject* node, const Access& access);
    void commit(PyObject* node, const Access& access);
    Ref captured(const Access& access);

    Storages storages_;
    std::vector<std::unique_ptr<Effect>> effects_;  // nullptr once applied
    std::vector<char> data_;                        // kept for its memory
};

// Whether a capture of such bytes makes the array that Python would, strides included.
bool can_capture(const Layout& layout);

void bind_effects(nanobind::module_& module);

}  // namespace tilewright
