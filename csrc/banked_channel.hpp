// One channel of a banked memory: its banks, its queues, what it decides next.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "banked_queue.hpp"
#include "banked_shape.hpp"
#include "slab.hpp"

namespace tilewright {

// What counters tell, as far as it does not follow from how many bursts and runs there were.
struct MemoryTally {
    int64_t row_closed = 0, row_conflicts = 0;
    int64_t idle_ps = 0, refresh_ps = 0, turnaround_ps = 0, row_ps = 0;
    int64_t bank_group_ps = 0;  // before the first burst of a run
};

using ChannelCounts = std::array<int64_t, 12>;  // in the order of ChannelCounters in Python

// When there is room: the time if that is decided, else the earliest that it could be.
struct Room {
    bool is_decided;
    int64_t at_ps;
};

// When the last command of a read goes at the earliest.
struct ReadTurn {
    bool is_inside;  // else the turn of the first command of one that comes now
    int64_t at_ps;
};

class alignas(64) MemoryChannel {
  public:
    // It may be several that go the same way.
    MemoryChannel(const MemoryShape& shape, Slab<MemoryAccess>& accesses, uint32_t num_members);
    // The last members go their own way from now on.
    std::unique_ptr<MemoryChannel> part(uint32_t num_last);
    uint32_t num_members() const { return num_members_; }
    // As many more as another has that goes the same way from now on go with it.
    bool join(MemoryChannel& other, int64_t now_ps) {
        if (data_end_ps_ != other.data_end_ps_ || queues_[0].bursts != other.queues_[0].bursts ||
            queues_[1].bursts != other.queues_[1].bursts) {
            return false;
        }
        settle(now_ps);
        other.settle(now_ps);
        if (!is_like(other, now_ps)) return false;
        num_members_ += other.num_members_;
        return true;
    }

    // Nothing is decided before that. At that time something may be.
    int64_t event_ps() const { return event_ps_; }
    // Before that no data are done whose command is not decided yet.
    int64_t least_done_ps() const {
        if (queues_[1].bursts > 0) return event_ps_ + shape_.least_data_end;
        return queues_[0].bursts > 0 ? event_ps_ + shape_.data_end[0] : kNeverPs;
    }
    // Decisions before now_ps have been made.
    ReadTurn read_turn(int64_t now_ps, int64_t access_id);
    // When a queue of that capacity, which they do not exceed, has room for more bursts.
    Room room(int direction, int64_t capacity, int64_t num_bursts) const {
        const int64_t surplus = queues_[direction].bursts + num_bursts - capacity;
        if (surplus > 0) return room_behind(direction, surplus);
        const int64_t place = run_bursts_ + surplus - 1;  // the burst of the run that makes room
        if (run_direction_ != direction || place < 0) return {true, kLongAgoPs};
        return {true, run_start_ps_ + place * shape_.pace};
    }
    // Decisions before now_ps have been made; column commands up to until_ps have been issued.
    void accept(int direction, const MemoryChunk& chunk, int64_t now_ps, int64_t until_ps);
    // Makes the decisions up to until_ps; accesses that are complete leave the memory for finished.
    void advance(int64_t until_ps, std::vector<Completion>& finished) {
        while (event_ps_ <= until_ps) {
            if (is_steady() && event_ps_ < due_ps_) {
                stream(until_ps, finished);
            } else {
                decide(event_ps_, finished);
            }
        }
    }
    ChannelCounts counters() const;
    // Rows that each bank opened for a burst.
    std::vector<int64_t> openings() const;
    // It will be needed soon.
    void fetch() const {
        constexpr size_t kLines = 4;
        const char* const first = reinterpret_cast<const char*>(this);
        for (size_t line = 0; line < kLines; ++line) __builtin_prefetch(first + 64 * line, 1);
    }

  private:
    enum class Opening : uint8_t { kClosed, kConflict, kUsed };

    struct alignas(64) Bank {
        int64_t open_row = kClosed;
        int64_t activated_ps = kLongAgoPs;
        int64_t precharge_ps = kLongAgoPs;  // may be closed from then on
        int64_t idle_ps = kLongAgoPs;       // closed, and RP is over
        int64_t wanted_row = 0;             // of the head: the oldest chunk that may decide
        int64_t num_openings = 0;           // that a burst has used
        Opening opening = Opening::kClosed;
    };

    struct Group {
        int64_t spacing_ps = kLongAgoPs;   // column commands: CCD
        int64_t turn_ps = kLongAgoPs;      // column commands: WTR, RTW
        int64_t write_ps = kLongAgoPs;     // last write command
        int64_t activate_ps = kLongAgoPs;  // RRD
    };

    struct Queue {
        int64_t bursts = 0;
        AgeOrder order;
    };

    struct Window {
        int64_t start_ps = kLongAgoPs;
        int64_t end_ps = kLongAgoPs;
        int64_t blocked_ps = 0;  // all windows so far
    };

    static constexpr int64_t kClosed = -1;             // the row of a closed bank
    static constexpr uint32_t kNoStreak = kNone - 1;  // no pattern, nor that of a chunk without one

    static uint64_t bit(int bank) { return uint64_t{1} << bank; }
    static int take_bank(uint64_t& banks) {  // the lowest of a set, which is then without it
        const int bank = std::countr_zero(banks);
        banks &= banks - 1;
        return bank;
    }

    // banked_channel.cpp
    Room room_behind(int direction, int64_t surplus) const;
    int64_t event_after_accept(const MemoryChunk& added, bool is_plain, int64_t now_ps);
    void decide(int64_t now_ps, std::vector<Completion>& finished);
    int64_t next_event_ps(int64_t now_ps);
    // When the next column command may go, if that is before some time; else that time.
    int64_t next_column_ps(int64_t now_ps, int64_t before_ps) {
        next_place_ = kNone;
        if (queues_[direction_].order.size() == 0) return before_ps;
        if (!goes_on_with_streak()) return find_column(now_ps, before_ps);
        if (bus_ps() >= before_ps) return before_ps;
        next_place_ = 0;
        return bus_ps();
    }
    [[gnu::noinline]] int64_t find_column(int64_t now_ps, int64_t before_ps);
    void end_run(int64_t now_ps);
    void turn(bool may_turn);
    bool wants_turn() const;
    int64_t after_writes_ps(const Group& own) const;
    bool is_closing() const;
    bool is_eligible(const MemoryChunk& chunk) const { return !is_closing_ || chunk.is_begun(); }

    // banked_likeness.cpp
    bool is_like(const MemoryChannel& other, int64_t now_ps) const;
    bool is_going_like(const MemoryChannel& other, int64_t now_ps) const;
    bool waits_like(const MemoryChannel& other, int direction) const;
    bool has_groups_like(const MemoryChannel& other, int64_t past_ps) const;
    bool has_banks_like(const MemoryChannel& other, int64_t past_ps) const;
    bool has_windows_like(const MemoryChannel& other, int64_t now_ps) const;
    void settle(int64_t now_ps) {
        refresh_until(now_ps);
        tell_banks();
    }

    // banked_row.cpp
    void give_row_commands(int64_t now_ps) {
        if (is_row_event_known_ && row_event_ps_ > now_ps) return;
        next_place_ = kNone;
        row_event_ps_ = to_precharge_ ? precharge(now_ps) : kNeverPs;
        if (to_activate_) row_event_ps_ = std::min(row_event_ps_, activate(now_ps));
        is_row_event_known_ = true;
    }
    void find_row_event();
    void find_heads(uint64_t banks);
    void set_head(uint64_t banks, int64_t row);
    // These return when the next of them may be, as things are.
    int64_t precharge(int64_t now_ps);
    int64_t activate(int64_t now_ps);
    void open(int index, int64_t now_ps);
    int64_t activate_ps(int bank) const;
    int oldest_of(uint64_t banks) const;

    // banked_column.cpp
    // If it goes on in its direction: bursts wait, and no turn is wanted.
    bool is_steady() const {
        if (is_closing_) return false;
        if (direction_ == 0) return !is_draining_ && queues_[0].bursts > 0;
        const int64_t least = is_draining_ ? shape_.drain_low : 0;
        return queues_[1].bursts > least && (is_draining_ || queues_[0].bursts == 0);
    }
    void stream(int64_t until_ps, std::vector<Completion>& finished);

    // A streak: chunks of one pattern and row, each at the end of the one before. Since its last
    // run nothing was opened or closed for another chunk that goes first. That run is told to its
    // banks only when it matters.
    bool goes_on_with_streak() const {
        const AgeOrder& order = queues_[direction_].order;
        if (streak_pattern_ == kNoStreak || is_closing_ || order.size() == 0) return false;
        const MemoryChunk& oldest = chunks_[order[0]];
        return oldest.pattern == streak_pattern_ && oldest.row == streak_row_;
    }
    void tell_banks() {
        if (is_run_untold_) tell_run();
    }
    [[gnu::noinline]] void tell_run();
    void end_streak() {
        tell_banks();
        streak_pattern_ = kNoStreak;
    }
    int64_t prolong_streak(int64_t start_ps, std::vector<Completion>& finished);

    // Serves a run if one can start, and tells how many bursts that were.
    int64_t issue(int64_t now_ps, std::vector<Completion>& finished);
    uint32_t ready_place(int64_t now_ps) const;
    int64_t serve(uint32_t place, int64_t start_ps, std::vector<Completion>& finished);
    void note_run(int64_t start_ps, int64_t num_bursts);
    int64_t most_bursts(const MemoryChunk& chunk, int64_t start_ps, int64_t until_ps) const;
    int64_t overtaken_ps(uint32_t place, int64_t start_ps, uint64_t& contested) const;
    int64_t follow(const MemoryChunk& chunk, int64_t start_ps, int64_t limit,
                   uint64_t contested) const;
    void use_banks(uint32_t last, int64_t num_bursts);
    void note_opening(Bank& bank);
    void use_group(int own, int64_t at_ps);
    void count_gap(const MemoryChunk& chunk, int64_t start_ps);
    void settle_queue(uint32_t place, int64_t num_bursts);
    void finish(const MemoryChunk& chunk, int64_t now_ps, std::vector<Completion>& finished);

    int64_t bus_ps() const { return data_end_ps_ - shape_.latency[direction_]; }
    // No column command of the current direction goes before that.
    int64_t floor_ps() const { return std::max(issued_ps_ + shape_.least_ccd, bus_ps()); }
    // When a column command may go to the open row of a bank, but for the data bus.
    int64_t ready_ps(const Bank& bank, int group_index) const {
        const Group& group = groups_[group_index];
        return std::max(bank.activated_ps + shape_.rcd[direction_],
                        std::max(spaced_ps(group), group.turn_ps));
    }
    // When CCD is over in a group.
    int64_t spaced_ps(const Group& group) const {
        return std::max(group.spacing_ps, issued_ps_ + shape_.least_ccd);
    }
    // When the next burst of a chunk may go; kNeverPs while its row is not open.
    int64_t column_ps(const MemoryChunk& chunk) const {
        const int index = shape_.bank_of[chunk.next()];
        const Bank& bank = banks_[index];
        if (bank.open_row != chunk.row) return kNeverPs;
        return std::max(bus_ps(), ready_ps(bank, shape_.group_of[index]));
    }

    // banked_wait.cpp
    bool is_ready_at(const MemoryChunk& chunk, const MemoryChunk* before, int64_t at_ps) const;

    // banked_refresh.cpp
    void refresh_until(int64_t now_ps) {
        if (due_ps_ > now_ps) return;
        next_place_ = kNone;
        end_streak();
        make_refreshes(now_ps);
    }
    void make_refreshes(int64_t now_ps);
    void skip_refreshes(int64_t now_ps);
    void make_refresh();
    int64_t refresh_due_ps() const;
    const Window& window(int bank) const {
        return windows_[shape_.refresh_turns > 1 ? bank : 0];
    }
    int64_t blocked_ps(int bank, int64_t until_ps) const;
    int last_bank(const MemoryChunk& chunk) const {
        return shape_.bank_of[chunk.first + chunk.num_bursts - 1];
    }

    // what a streak needs: four cache lines
    const MemoryShape& shape_;
    int64_t event_ps_ = kNeverPs;
    int64_t issued_ps_ = kLongAgoPs;
    int64_t data_end_ps_ = 0;
    int64_t due_ps_ = kNeverPs;
    int64_t row_event_ps_ = kNeverPs;  // the next precharge or activate
    int num_begun_ = 0;
    uint32_t next_place_ = kNone;  // in the queue, of the chunk that goes next: then at event_ps_
    uint8_t direction_ = 0;
    uint8_t run_direction_ = 0;
    int8_t last_direction_ = -1;
    bool is_draining_ = false;
    bool is_closing_ = false;  // as the heads know it
    bool is_row_event_known_ = true;
    bool is_run_untold_ = false;  // the last run, of a streak, to its banks

    int64_t run_start_ps_ = kLongAgoPs;
    int64_t run_bursts_ = 0;
    int64_t streak_row_ = 0;
    int64_t decided_ps_ = -1;
    int64_t read_ps_ = kLongAgoPs;  // last read command
    int64_t num_bursts_[2] = {0, 0};
    int64_t num_runs_ = 0;

    Queue queues_[2];

    Slab<MemoryChunk> chunks_;
    Slab<MemoryAccess>& accesses_;
    uint32_t num_members_;
    uint32_t streak_pattern_ = kNoStreak;
    uint32_t streak_last_ = 0;  // a last burst of the pattern
    // and others
    uint64_t wanted_ = 0;  // banks that have a head
    uint64_t to_precharge_ = 0;
    uint64_t to_activate_ = 0;
    int64_t accepted_ps_ = -1;
    uint64_t accepted_round_ = 0;
    std::vector<Bank> banks_;
    std::vector<Group> groups_;
    std::vector<Window> windows_;
    MemoryTally tally_;
    int64_t activates_ps_[4] = {kLongAgoPs, kLongAgoPs, kLongAgoPs, kLongAgoPs};
    unsigned oldest_activate_ = 0;
    int64_t refresh_period_ = 0, refresh_turn_ = 0;  // the next one
};

}  // namespace tilewright
