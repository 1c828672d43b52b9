// Where the commands of one program are issued: what executor/program.py does, without its frames.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "front_call.hpp"
#include "front_effect.hpp"
#include "front_item.hpp"
#include "front_node.hpp"
#include "front_order.hpp"
#include "front_path.hpp"
#include "front_value.hpp"
#include "issuer.hpp"

namespace tilewright {

// What a plan of executor/run.py says, read once.
struct PlanView {
    Ref plan;
    Ref run;
    Ref type;  // of its first result
    int64_t number = 0;
    bool is_view = false;
    bool transposes = false;  // issued when somebody but a product needs the result
    size_t num_factors = 0;   // the first operands, if they are read as they lie, transposed or not
    bool has_floats = false;
    bool is_single = false;  // one result
};

// An op on the types of its operands; types and names are objects that live as long as Python.
struct PlanKey {
    PyObject* op;
    PyObject* left;
    PyObject* right;  // nullptr for an op of one operand
    int64_t axis;     // of a new axis; of a number its bits

    bool operator==(const PlanKey& other) const = default;
};

struct PlanKeyHash {
    size_t operator()(const PlanKey& key) const {
        size_t hash = reinterpret_cast<size_t>(key.op) >> 4;
        hash = hash * 31 + (reinterpret_cast<size_t>(key.left) >> 4);
        hash = hash * 31 + (reinterpret_cast<size_t>(key.right) >> 4);
        return hash * 31 + static_cast<size_t>(key.axis);
    }
};

// A number of the kernel's text beside a block of this type, as an operand of an op.
struct ConstantView {
    Ref type;
    Ref node;
};

// What was found once in a run, whichever program asks.
class PlanShelf {
  public:
    PlanShelf(const PlanShelf&) = delete;
    // Copies are virtual bytes from, to, of tensors of which there are several.
    PlanShelf(nanobind::dict plans, bool carries_data,
              std::vector<std::pair<int64_t, int64_t>> copies)
        : carries_data(carries_data), plans_(std::move(plans)), copies_(std::move(copies)) {}

    const PlanView& find(PyObject* program, PyObject* op, const Ref& types, const Ref& attributes);
    const PlanView& view_of(PyObject* plan);

    int traverse(visitproc visit, void* arg);
    void clear();

    ConstantView constant(PyObject* program, PyObject* op, PyObject* number, PyObject* block);
    Fill fill(PyObject* program, PyObject* number, PyObject* dtype);

    // Whether a store reaches copies: one program alone may store there.
    bool has_copies(Spans spans) const;

    // Loads, stores, gathers among them, and bytes since the last time.
    nanobind::tuple take_counts();
    int64_t num_loads = 0, num_stores = 0, num_gathers = 0, loaded_bytes = 0, stored_bytes = 0;

    const bool carries_data;
    std::unordered_map<PlanKey, const PlanView*, PlanKeyHash> by_types;
    KnownCalls calls;  // of functions of the library

  private:
    nanobind::dict plans_;
    std::vector<std::pair<int64_t, int64_t>> copies_;
    std::unordered_map<PyObject*, PlanView> views_;  // by plan, which they keep
    std::unordered_map<PlanKey, ConstantView, PlanKeyHash> constants_;
    std::unordered_map<PlanKey, Fill, PlanKeyHash> fills_;
};

// What became of an access that this code was asked to issue; executor/run.py has the same.
enum class Outcome {
    kIssued,
    kUnsupported,     // executor/dma.py issues it, or raises
    kBatchFull,       // hand the commands over, then ask again
    kOffsetsPending,  // of a load: wait for the offsets, then ask again
};

class Desk {
  public:
    Desk(const Desk&) = delete;
    // The program outlives its desk and is not counted, since it holds it.
    Desk(nanobind::handle program, nanobind::object shelf, nanobind::object walker,
         nanobind::object issuer, nanobind::object effects, nanobind::object paths,
         nanobind::object order);

    ~Desk() {
        if (last_found == this) last_found = nullptr;
    }

    // The desk of a program; nullptr if it has none. An error throws.
    static Desk* of(PyObject* program);

    // Results of commands, as new references; errors throw.
    PyObject* combine(Op op, PyObject* left, PyObject* right);
    PyObject* combine_with_number(Op op, PyObject* left, PyObject* right);  // nullptr: not here
    PyObject* result(const PlanView& plan, PyObject* const* operands, size_t count);
    Ref constant(PyObject* type, PyObject* node);  // a number as an operand
    PyObject* expand(PyObject* block, int axis);
    PyObject* compute(PyObject* op, const Ref& operands, const Ref& attributes);
    PyObject* command(const PlanView& plan, PyObject* const* operands, size_t count,
                      PyObject* make);
    PyObject* command_of(PyObject* plan, const Ref& operands, PyObject* make);

    // Try to issue an access of whole-byte elements at affine addresses, or a load at computed offsets.
    // ``block`` is that of an issued load.
    Outcome load(PyObject* pointers, PyObject* mask, PyObject* other, Ref& block);
    Outcome store(PyObject* pointers, PyObject* value, PyObject* mask);

    int64_t piece_end = 0;  // commands at which they are handed over
    int64_t max_commands = INT64_MAX;  // of one program
    int64_t first_command = 0;  // commands that were issued before the program began
    int64_t last_read = 0;      // the first virtual byte of the last load
    bool is_composing = false;  // commands are parts of one: accesses are not for compiled code

    // The programs of a PE have one desk, one after the other: each ends the one before, of which
    // nothing is of this turn.
    void begin(nanobind::object title);
    void begin_anew(nanobind::handle ids);  // the program is the one of these ids from now on
    void end() { is_over_ = true; }
    uint32_t turn() const { return turn_; }

    // Whether the program has to hand its commands over, or to stop, before it issues another.
    bool is_full() const {
        const int64_t count = issuer_.num_commands();
        return count >= piece_end || count - first_command >= max_commands;
    }

    // Whether Python may have a value now; the next command waits for one that follows from others.
    bool is_there(PyObject* block);

    void release(int64_t number);

    // What computes are asked for goes to a recording, until there is none.
    void record(Recording* recording) { recording_ = recording; }
    bool is_idle() const { return !is_over_ && recording_ == nullptr; }
    PlanShelf& shelf() { return shelf_; }

    void note_tile(int64_t number, PyObject* type, const SourceLine& line);
    nanobind::list tiles() const;

    int traverse(visitproc visit, void* arg);
    void clear() {}

    PyObject* program() const { return program_; }
    // Its place on an axis of the grid, borrowed; nullptr: the grid has no such axis.
    PyObject* id(int64_t axis) const;

  private:
    struct Tile {
        int64_t number;
        Ref type;
        Ref line_code;
        int instruction;
    };

    struct Target {  // of an access: addresses and places of one shape
        Form form;
        Region box;
    };

    PyObject* self() const;  // as Python has it
    void hand_over();
    void note(const PlanView& plan, PyObject* const* operands, size_t count, PyObject* made);
    Asker asker() const { return {walker_.ptr(), issuer_.num_commands() + 1}; }
    bool aim(PyObject* pointers, PyObject* mask, Target& target) const;
    bool find_items(const PointersObject& addresses, const Target& target, bool is_masked);
    bool reach(bool is_write);
    bool reach_items(bool is_write);
    void follow(bool is_write);
    bool carries(PyObject* type) const;  // whether memory holds values of it
    PyObject* issue_load(PyObject* type, const Layout& layout, PyObject* other);
    PyObject* view(const PlanView& plan, PyObject* operand);
    Ref constant(Op op, PyObject* number, PyObject* block);
    [[noreturn]] void raise_out_of_room(PyObject* type, const Ref& num_bytes);

    static inline Desk* last_found = nullptr;  // most who ask are of one program

    PyObject* program_;
    nanobind::object shelf_object_, walker_, issuer_object_, effects_object_, paths_object_,
        order_object_;
    PlanShelf& shelf_;
    Issuer& issuer_;
    EffectLog& effects_;
    PathFinder& paths_;
    AccessOrder& order_;
    void note_other() {
        if (recording_ != nullptr) recording_->is_plain = false;
    }

    bool is_over_ = true;
    uint32_t turn_ = 0;
    nanobind::object title_;  // of the program, for messages
    mutable PyObject* self_ = nullptr;  // not counted
    Recording* recording_ = nullptr;
    std::vector<Tile> tiles_;  // those held, in the order of their loads
    // of the command at hand, kept for their memory
    std::vector<int64_t> numbers_, after_;
    std::vector<PyObject*> nodes_;  // not counted
    Items items_;
    std::vector<Strided> spans_;
    std::vector<Piece> pieces_;
    std::vector<IssuedAccess> accesses_;
};

// Accesses of any program, if its desk issues accesses now.
Outcome known_load(PyObject* pointers, PyObject* mask, PyObject* other, Ref& block);
Outcome known_store(PyObject* pointers, PyObject* value, PyObject* mask);

void bind_desk(nanobind::module_& module);

}  // namespace tilewright
