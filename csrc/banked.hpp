// Memories that serve accesses: banked (an HBM slice, exactly) and simple (a rate and a latency).
// docs/memory.md is the law; src/tilewright/engine/banked_*.py is the same in Python.
#pragma once

#include <bit>
#include <cstdint>
#include <tuple>
#include <vector>

namespace nanobind {
class module_;
}

namespace tilewright {

constexpr int64_t kNeverPs = int64_t{1} << 62;
constexpr int64_t kLongAgoPs = -(int64_t{1} << 61);  // before any distance could matter
constexpr int64_t kClosed = -1;                      // the row of a closed bank
constexpr int kMaxBanks = 64;                        // of a channel: bits of a word

// Access, when its last data were done, how long refresh held that up.
using Completion = std::tuple<int64_t, int64_t, int64_t>;

// A divisor that is a shift when it can be.
class Divisor {
  public:
    explicit Divisor(int64_t value = 1)
        : value_(value),
          shift_(std::has_single_bit(static_cast<uint64_t>(value))
                     ? std::countr_zero(static_cast<uint64_t>(value))
                     : -1) {}

    int64_t quotient(int64_t number) const {
        return shift_ >= 0 ? number >> shift_ : number / value_;
    }
    int64_t remainder(int64_t number) const {
        return shift_ >= 0 ? number & (value_ - 1) : number % value_;
    }
    int64_t value() const { return value_; }

  private:
    int64_t value_;
    int shift_;
};

struct MemoryTiming {
    int64_t bl, cl, cwl, rcd_read, rcd_write, rp, ras, rc, ccd_s, ccd_l, ccd_r, rrd_s, rrd_l, faw;
    int64_t wtr_s, wtr_l, rtw, wr, rtp;
};

// What all channels of a memory share. Directions are numbers: 0 reads, 1 writes.
struct MemoryShape {
    // numbers in the order of banked_numbers in Python; the bank of each burst of a row of all banks
    MemoryShape(const std::vector<int64_t>& numbers, std::vector<uint8_t> bank_table);

    int64_t num_channels, num_groups, group_banks, stack_groups;
    Divisor channels, span, burst, interleave, chunk_bursts;
    int64_t capacity[2];
    int64_t drain_high, drain_low;
    int64_t refresh_turns, refresh_interval, refresh_first, refresh_busy;  // turns 0: no refresh
    MemoryTiming timing;

    int64_t num_banks;
    int64_t latency[2], data_end[2], rcd[2], close[2];  // by direction
    int64_t least_ccd, pace;
    std::vector<uint8_t> bank_of;      // of a burst of the span
    std::vector<uint8_t> group_of;     // of a bank
    std::vector<uint16_t> paced;       // bursts from here in its chunk that can go at the bus's pace
    std::vector<uint64_t> banks_from;  // banks of the bursts from here to the end of its chunk
    std::vector<int64_t> ccd;          // group to group

    int64_t ccd_of(int64_t one, int64_t other) const { return ccd[one * num_groups + other]; }
    uint64_t banks_between(uint32_t first, uint32_t end) const;

  private:
    void fill_spacing();
};

struct MemoryAccess {
    int64_t access_id;
    int64_t done_ps;
    int64_t refresh_ps;
    uint32_t chunks_left;
    uint32_t last_position;  // of the chunk that decided the two
};

// Neighbouring bursts of an access in one channel; they go in order.
struct MemoryChunk {
    uint64_t left;  // banks of the bursts that wait
    uint64_t round;
    int64_t access_id;
    int64_t accepted_ps;
    int64_t blocked_ps;
    int64_t row;
    uint32_t access;
    uint32_t position;
    uint32_t first;  // burst of the span
    uint16_t num_bursts;
    uint16_t issued;

    uint32_t next() const { return first + issued; }
    bool is_begun() const { return issued > 0 && issued < num_bursts; }
    bool is_older(const MemoryChunk& other) const {
        return std::tie(round, access_id, position) <
               std::tie(other.round, other.access_id, other.position);
    }
};

// Slots of chunks in order of age. Nearly all come at the end and go at the front.
class AgeOrder {
  public:
    uint32_t size() const { return static_cast<uint32_t>(slots_.size() - front_); }
    uint32_t operator[](uint32_t place) const { return slots_[front_ + place]; }

    void insert(uint32_t place, uint32_t slot) {
        if (place == size()) return slots_.push_back(slot);
        slots_.insert(slots_.begin() + front_ + place, slot);
    }

    void erase(uint32_t place) {
        for (uint32_t at = front_ + place; at > front_; --at) slots_[at] = slots_[at - 1];
        ++front_;
        if (front_ == slots_.size() || front_ >= 64) compact();
    }

  private:
    void compact() {
        slots_.erase(slots_.begin(), slots_.begin() + front_);
        front_ = 0;
    }

    std::vector<uint32_t> slots_;
    uint32_t front_ = 0;
};

struct MemoryTally {
    int64_t bursts[2] = {0, 0};
    int64_t row_hits = 0, row_closed = 0, row_conflicts = 0;
    int64_t busy_ps = 0, idle_ps = 0, refresh_ps = 0, turnaround_ps = 0, bank_group_ps = 0;
    int64_t row_ps = 0;
};

class MemoryChannel {
  public:
    MemoryChannel(const MemoryShape& shape, std::vector<MemoryAccess>& accesses);

    int64_t event_ps() const { return event_ps_; }

    // Bursts in a queue when the column commands up to until_ps have been issued.
    int64_t waiting(int direction, int64_t until_ps) const;
    bool has_room(int direction, int64_t capacity, int64_t num_bursts, int64_t until_ps) const;
    // When a queue has room, as far as that is decided; -1: not yet.
    int64_t room_ps(int direction, int64_t num_bursts, int64_t now_ps) const;
    void accept(int direction, const MemoryChunk& chunk, int64_t now_ps, int64_t until_ps);
    // Makes the decisions up to now_ps; slots of completed accesses go to finished.
    void advance(int64_t now_ps, std::vector<uint32_t>& finished);
    std::vector<int64_t> counters() const;

  private:
    enum class Opening : uint8_t { kClosed, kConflict, kUsed };

    struct Bank {
        int64_t open_row = kClosed;
        int64_t activated_ps = kLongAgoPs;
        int64_t precharge_ps = kLongAgoPs;  // may be closed from then on
        int64_t idle_ps = kLongAgoPs;       // closed, and RP is over
        int64_t wanted_row = 0;             // of the head: the oldest chunk that may decide
        uint32_t head = 0;
        Opening opening = Opening::kClosed;
    };

    struct Group {
        int64_t spacing_ps = kLongAgoPs;   // column commands: CCD
        int64_t turn_ps = kLongAgoPs;      // column commands: WTR, RTW
        int64_t write_ps = kLongAgoPs;     // last write command
        int64_t activate_ps = kLongAgoPs;  // RRD
    };

    struct Queue {
        AgeOrder order;
        int64_t bursts = 0;
        uint64_t banks = 0;  // that its bursts need
        uint32_t demands[kMaxBanks] = {};
    };

    struct Window {
        int64_t start_ps = kLongAgoPs;
        int64_t end_ps = kLongAgoPs;
        int64_t blocked_ps = 0;  // all windows so far
    };

    int64_t next_event_ps(int64_t now_ps);
    uint32_t add_chunk(const MemoryChunk& chunk);

    void end_run(int64_t now_ps);
    void turn(bool may_turn);
    bool wants_turn() const;
    int64_t after_writes_ps(const Group& own) const;
    bool is_closing() const;
    bool is_eligible(const MemoryChunk& chunk) const { return !is_closing_ || chunk.is_begun(); }

    void give_row_commands(int64_t now_ps);
    void find_row_event();
    void find_heads(uint64_t banks);
    void set_head(uint64_t banks, uint32_t slot);
    void precharge(int64_t now_ps);
    void activate(int64_t now_ps);
    int64_t activate_ps(int bank) const;
    bool goes_before(int bank, int other) const;

    int64_t column_ps(const MemoryChunk& chunk) const;
    int64_t ready_ps(const Bank& bank, int index) const;
    int64_t floor_ps() const;
    int64_t bus_ps() const { return data_end_ps_ - shape_.latency[direction_]; }
    // Serves a run if one can start; if other commands may follow at the same instant.
    bool issue(int64_t now_ps, std::vector<uint32_t>& finished);
    int64_t run_length(const MemoryChunk& chunk, uint32_t place, int64_t start_ps) const;
    int64_t overtaken_ps(uint32_t place, int64_t start_ps, uint64_t& contested) const;
    int64_t follow(const MemoryChunk& chunk, int64_t start_ps, int64_t limit,
                   uint64_t contested) const;
    void serve(MemoryChunk& chunk, int64_t start_ps, int64_t num_bursts);
    void use_bank(Bank& bank, int64_t at_ps);
    void use_group(int own, int64_t at_ps);
    void count_gap(const MemoryChunk& chunk, int bank, int64_t start_ps);
    void settle_demands(uint32_t place, int64_t num_bursts);
    void finish(const MemoryChunk& chunk, std::vector<uint32_t>& finished);

    void refresh_until(int64_t now_ps);
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

    const MemoryShape& shape_;
    std::vector<MemoryAccess>& accesses_;
    int64_t event_ps_ = kNeverPs;
    int64_t issued_ps_ = kLongAgoPs;
    int64_t data_end_ps_ = 0;
    int64_t due_ps_ = kNeverPs;
    int direction_ = 0;
    int last_direction_ = -1;
    bool is_draining_ = false;
    bool is_closing_ = false;  // as the heads know it
    int num_begun_ = 0;
    int run_direction_ = 0;
    int64_t run_start_ps_ = kLongAgoPs;
    int64_t run_bursts_ = 0;
    int64_t decided_ps_ = -1;
    uint64_t wanted_ = 0;  // banks that have a head
    uint64_t to_precharge_ = 0;
    uint64_t to_activate_ = 0;
    int64_t row_event_ps_ = kNeverPs;  // the next precharge or activate
    bool is_row_event_known_ = true;
    int64_t read_ps_ = kLongAgoPs;  // last read command
    int64_t activates_ps_[4] = {kLongAgoPs, kLongAgoPs, kLongAgoPs, kLongAgoPs};
    unsigned oldest_activate_ = 0;
    int64_t refresh_period_ = 0, refresh_turn_ = 0;  // the next one
    Queue queues_[2];
    std::vector<Bank> banks_;
    std::vector<Group> groups_;
    std::vector<Window> windows_;
    std::vector<MemoryChunk> chunks_;
    std::vector<uint32_t> free_chunks_;
    MemoryTally tally_;
};

// Channels behind one door. Arguments have been checked by whoever calls.
class BankedCore {
  public:
    BankedCore(const std::vector<int64_t>& numbers, std::vector<uint8_t> bank_table);
    BankedCore(const BankedCore&) = delete;
    BankedCore& operator=(const BankedCore&) = delete;

    bool can_accept(int64_t now_ps, bool is_write, int64_t address, int64_t num_bytes) const;
    int64_t room_ps(bool is_write, int64_t address, int64_t num_bytes) const;
    void accept(int64_t now_ps, int64_t access_id, bool is_write, int64_t address,
                int64_t num_bytes);
    int64_t next_ps() const;  // -1: nothing to decide
    const std::vector<Completion>& advance(int64_t now_ps);
    std::vector<std::vector<int64_t>> counters() const;

  private:
    int64_t until_ps(int64_t now_ps) const { return advanced_ps_ == now_ps ? now_ps : now_ps - 1; }

    MemoryShape shape_;
    std::vector<MemoryAccess> accesses_;
    std::vector<uint32_t> free_accesses_;
    std::vector<MemoryChannel> channels_;
    std::vector<int64_t> events_ps_;
    mutable std::vector<int64_t> need_;  // bursts per channel, all 0 between calls
    std::vector<uint32_t> finished_;
    std::vector<Completion> completions_;
    int64_t advanced_ps_ = -1;
    uint64_t round_ = 0;
};

// A rate per channel and a latency; always has room.
class SimpleCore {
  public:
    SimpleCore(int64_t num_channels, int64_t interleave_bytes, int64_t bytes_per_us,
               int64_t latency_ps);

    bool can_accept(int64_t, bool, int64_t, int64_t) const { return true; }
    int64_t room_ps(bool, int64_t, int64_t) const { return now_ps_; }
    void accept(int64_t now_ps, int64_t access_id, bool is_write, int64_t address,
                int64_t num_bytes);
    int64_t next_ps() const { return waiting_.empty() ? -1 : std::get<0>(waiting_.front()); }
    const std::vector<Completion>& advance(int64_t now_ps);
    std::vector<std::vector<int64_t>> counters() const;

  private:
    struct Channel {
        int64_t free_ps = 0, busy_ps = 0, idle_ps = 0;
        int64_t chunks[2] = {0, 0};
    };
    using Waiting = std::tuple<int64_t, int64_t, bool, int64_t, int64_t>;

    int64_t serve(const Waiting& access);

    Divisor interleave_, num_channels_;
    int64_t bytes_per_us_, latency_ps_;
    int64_t now_ps_ = 0;
    std::vector<Channel> channels_;
    std::vector<Waiting> waiting_;
    std::vector<Completion> completions_;
};

void bind_banked(nanobind::module_& module);

}  // namespace tilewright
