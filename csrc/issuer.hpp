// Commands of one processor in the order of their issue; engine/issuer.py is the same in Python.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "core.hpp"
#include "issue_space.hpp"

namespace nanobind {
class module_;
}

namespace tilewright {

// Segments of bytes in one memory that a load or a store exchanges.
struct IssuedAccess {
    int64_t trip;
    int64_t num_segments;
    int64_t segment_bytes;
    int64_t stride_bytes;
    int64_t address;
    int64_t walk;  // the last command that walks, or walked, for one of its pages
};

// An operand of an update, and how many of its bytes go by.
struct Streamed {
    int64_t value;
    int64_t num_bytes;
};

// A task of a message; see engine.message.Step.
struct MessageStep {
    Kind kind;
    int64_t target;
    int64_t amount;
    int64_t tag;
    int64_t before;  // the step that it comes after, or kFromStart
    std::vector<SignalAmount> waits;
    std::vector<SignalAmount> raises;
    int64_t served_effect;
    bool ends;  // the command does not end before it
};

class Issuer {
  public:
    static constexpr int64_t kNoRoom = -1;   // instead of a task or a value
    static constexpr int64_t kNoValue = -1;  // a store of no value

    Issuer(const Core& core, const nanobind::handle& spec);  // an IssuerSpec

    int64_t add_plan(const std::vector<int64_t>& plan);
    int64_t compute(int64_t plan, std::span<const int64_t> operands);
    int64_t load(int64_t num_bytes, std::span<const IssuedAccess> accesses,
                 std::span<const int64_t> after, int64_t served);
    int64_t store(int64_t value, int64_t num_bytes, std::span<const IssuedAccess> accesses,
                  std::span<const int64_t> after, int64_t served);
    int64_t update(int64_t plan, int64_t value, std::span<const Streamed> operands);
    int64_t park(int64_t value);
    int64_t send(int64_t value, int64_t num_bytes, std::span<const MessageStep> steps);
    int64_t receive(int64_t num_bytes, std::span<const MessageStep> steps);
    int64_t last_issue() const { return last_issue_; }
    void open_composite();
    int64_t close_composite();
    void release(int64_t value);
    int64_t task_of(int64_t value) const { return values_[value].task; }
    int64_t walk_of(int64_t command) const;
    void stall(int64_t task) { stalls_.push_back(task); }
    const std::vector<int64_t>& stalls() const { return stalls_; }
    void finish();

    int64_t num_commands() const { return num_commands_; }
    int64_t num_waiting() const { return static_cast<int64_t>(graph_->definitions.size()); }
    int64_t spilled_bytes() const { return spilled_bytes_; }
    int64_t far_free_bytes() const { return far_.free_bytes(); }

    GraphPtr take_piece();  // nullptr if nothing has been issued
    void note_first_id(int64_t first_id);
    int64_t task_id(int64_t task) const;

  private:
    static constexpr int64_t kNoTask = -1;
    static constexpr int64_t kFromStart = -1;
    static constexpr int64_t kFirstTask = 0;
    static constexpr int64_t kUntouched = -1;
    static constexpr int64_t kNoWalk = 0;  // commands count from 1
    static constexpr int64_t kManyUses = 4096;

    enum class Staging { kFar, kStaged, kNoRoom };

    struct Step {
        int64_t route;
        int64_t hold_ps;
    };

    struct Plan {
        Step steps[2];
        int64_t num_bytes;
    };

    struct Value {
        int64_t num_bytes = 0, near_bytes = 0, far_bytes = 0, task = 0;
        std::vector<int64_t> uses;  // one for each command: of the last ones some may be under way
        int64_t uses_before = kUntouched;  // the composite that is open; then come its parts'

        // By a command whose part in the value ends with this task.
        void note_use(int64_t task) {
            if (uses.back() != task) uses.push_back(task);
        }

        // All but the last ones of many uses have ended.
        void forget_uses(int64_t window) {
            if (static_cast<int64_t>(uses.size()) < kManyUses + window) return;
            uses.erase(uses.begin(), uses.end() - window);
        }
    };

    struct Walk {
        int64_t command;
        int64_t task;
    };

    struct Piece {
        int64_t first_task;
        int64_t first_id;
        GraphPtr graph;
    };

    int64_t issue();
    int64_t work(const Plan& plan);
    int64_t fetch(Value& value, int64_t issue);
    int64_t stream(const Value& value, int64_t needed_bytes, int64_t issue);
    Staging stage(int64_t number, int64_t num_bytes);
    int64_t access(std::span<const IssuedAccess> accesses, int64_t served);
    void translate(int64_t walk, std::vector<int64_t>& after);
    int64_t since_issue(int64_t delay_ps);
    void note_use(int64_t number, int64_t task);
    void touch(int64_t number, int64_t uses_before);
    int64_t add_value(int64_t num_bytes, int64_t near_bytes, int64_t far_bytes, int64_t task);
    void complete(int64_t task);

    // issuer_task.cpp
    int64_t take_steps(std::span<const MessageStep> steps);
    int64_t hold(int64_t route, int64_t hold_ps, int64_t delay_ps,
                 std::span<const int64_t> after);
    int64_t join(std::span<const int64_t> after);
    int64_t append(const Definition& task, int64_t target, std::span<const int64_t> after);
    int64_t earlier(int64_t task);
    void forget_ended();

    const Core& core_;
    int64_t issue_route_, issue_ps_, dispatch_ps_, window_;
    int64_t read_route_, read_rate_, write_route_, write_rate_;
    IssueSpace near_, far_;
    int64_t hit_ps_, walk_ps_;
    std::deque<Walk> walks_;  // in the order of commands, but for those of forgotten pieces
    Walk hit_{kNoWalk, kNoTask};  // the last command that paid for one, and how
    std::vector<Plan> plans_;
    std::vector<Value> values_;  // those beyond num_values_ are kept for their memory
    size_t num_values_ = 0;
    std::vector<int64_t> free_values_;
    GraphPtr graph_;
    int64_t base_ = 0;  // number of the graph's first task
    std::vector<std::pair<int64_t, int64_t>> earlier_;  // of this piece: task, its index
    std::deque<Piece> pieces_;  // but for the first ones, all of whose tasks have ended
    int64_t ended_id_ = 0;      // of a task that has ended, if pieces were forgotten
    std::deque<int64_t> under_way_;
    int64_t last_issue_ = -1;
    std::vector<int64_t> stalls_;  // tasks that the next command is issued after
    bool in_composite_ = false;
    int64_t composite_issue_ = -1;
    std::vector<int64_t> composite_ends_;
    std::vector<int64_t> touched_;  // values that parts of the composite use
    int64_t num_commands_ = 0;
    int64_t spilled_bytes_ = 0;
    std::vector<int64_t> after_, fetch_after_, access_after_, tasks_;  // kept for their memory
};

void bind_issuer(nanobind::module_& module);

}  // namespace tilewright
