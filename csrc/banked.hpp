// Memories that serve accesses: banked (an HBM slice, exactly) and simple (a rate and a latency).
// docs/memory.md is the law; src/tilewright/engine/dram is the same in Python.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "banked_gang.hpp"

namespace nanobind {
class module_;
}

namespace tilewright {

// Chunks of an access that lie in neighbouring channels, at the same place of each.
struct Swath {
    int64_t first, end;  // channels
    int64_t row;
    uint32_t burst;  // the first of the span
    uint16_t num_bursts;
};

// Channels behind one door. Arguments have been checked by whoever calls.
//
// Decisions can be put off: until an access is added nothing but their times decides them, so they
// may be made late as long as that shows nowhere. Whoever does not call advance at every next_ps
// calls find_room before accept, and advance before wake_ps is over.
class BankedCore {
  public:
    explicit BankedCore(std::shared_ptr<const MemoryShape> shape);
    BankedCore(const BankedCore&) = delete;
    BankedCore& operator=(const BankedCore&) = delete;

    bool can_accept(int64_t now_ps, bool is_write, int64_t address, int64_t num_bytes);
    int64_t room_ps(bool is_write, int64_t address, int64_t num_bytes);
    // Tells when to wake for it: wake_ps is not earlier for any other reason.
    int64_t accept(int64_t now_ps, int64_t access_id, bool is_write, int64_t address,
                   int64_t num_bytes, uint32_t tag = 0);
    int64_t next_ps() const;  // -1: nothing to decide
    const std::vector<Completion>& advance(int64_t now_ps);
    std::vector<std::vector<int64_t>> counters() const;
    std::vector<std::vector<int64_t>> openings() const;  // by channel and bank

    int64_t least_service_ps(bool is_write) const { return shape_.data_end[is_write]; }
    // When a read that has been added, or will be, is served at the earliest; decisions before now_ps
    // have been made, but not those that it waits for.
    int64_t least_read_ps(int64_t now_ps, int64_t access_id, int64_t address, int64_t num_bytes);

    // Makes the decisions before now_ps.
    const std::vector<Completion>& catch_up(int64_t now_ps);
    // Up to then no completion that advance has not reported lies in the past; -1: there is none.
    int64_t wake_ps() const;
    // When an access finds room; makes the decisions before now_ps that this depends on.
    Room find_room(int64_t now_ps, bool is_write, int64_t address, int64_t num_bytes) {
        const std::vector<Swath>& swaths = swaths_of(address, num_bytes);
        const Swath& first = swaths.front();
        const uint32_t gang = gangs_.number_of(first.first);
        if (swaths.size() > 1 || gangs_.end_of(gang) < first.end) {
            return find_rooms(now_ps, is_write, num_bytes);
        }
        decide(gang, now_ps - 1);
        return gangs_[gang].room(is_write, shape_.capacity[is_write], first.num_bursts);
    }
    bool is_there(const Room& room, int64_t now_ps) const {
        return room.is_decided && room.at_ps <= until_ps(now_ps);
    }

  private:
    // All chunks of an access, in order. Who asks for room is accepted then: they are kept.
    const std::vector<Swath>& swaths_of(int64_t address, int64_t num_bytes) {
        if (address != placed_address_ || num_bytes != placed_bytes_) place(address, num_bytes);
        return swaths_;
    }
    [[gnu::noinline]] void place(int64_t address, int64_t num_bytes);
    // The same as find_room, for the access that was placed last: it may need several gangs.
    [[gnu::noinline]] Room find_rooms(int64_t now_ps, bool is_write, int64_t num_bytes);
    void decide(uint32_t gang, int64_t until_ps) {
        if (gangs_.event_ps(gang) <= until_ps) decide_now(gang, until_ps);
    }
    [[gnu::noinline]] void decide_now(uint32_t gang, int64_t until_ps);
    const std::vector<Completion>& decide_all(int64_t until_ps);
    int64_t until_ps(int64_t now_ps) const { return advanced_ps_ == now_ps ? now_ps : now_ps - 1; }

    std::shared_ptr<const MemoryShape> shared_shape_;
    const MemoryShape& shape_;
    Slab<MemoryAccess> accesses_;
    MemoryGangs gangs_;
    std::vector<int64_t> need_;  // bursts per channel, all 0 between calls
    int64_t placed_address_ = -1, placed_bytes_ = 0;
    std::vector<Swath> swaths_;  // of the access that was placed last
    std::vector<uint32_t> due_;  // gangs
    std::vector<Completion> finished_;     // and not yet reported
    std::vector<Completion> completions_;  // as reported last
    int64_t advanced_ps_ = -1;
    int64_t accepted_ps_ = -1;
    bool has_accepted_ = false;  // since the last advance
    uint64_t round_ = 0;
};

// A rate per channel and a latency; always has room.
class SimpleCore {
  public:
    explicit SimpleCore(const nanobind::handle& spec);  // a SimpleSpec

    bool can_accept(int64_t, bool, int64_t, int64_t) const { return true; }
    int64_t room_ps(bool, int64_t, int64_t) const { return now_ps_; }
    int64_t accept(int64_t now_ps, int64_t access_id, bool is_write, int64_t address,
                   int64_t num_bytes, uint32_t tag = 0);
    int64_t next_ps() const { return waiting_.empty() ? -1 : std::get<0>(waiting_.front()); }
    const std::vector<Completion>& advance(int64_t now_ps);
    std::vector<std::vector<int64_t>> counters() const;
    std::vector<std::vector<int64_t>> openings() const;  // no banks, so none

    // It decides at once, so there is nothing to catch up with.
    const std::vector<Completion>& catch_up(int64_t) {
        completions_.clear();
        return completions_;
    }
    int64_t wake_ps() const { return next_ps(); }
    int64_t least_service_ps(bool) const { return latency_ps_; }
    int64_t least_read_ps(int64_t now_ps, int64_t, int64_t, int64_t) const {
        return now_ps + latency_ps_;
    }
    Room find_room(int64_t, bool, int64_t, int64_t) const { return {true, kLongAgoPs}; }
    bool is_there(const Room&, int64_t) const { return true; }

  private:
    struct Channel {
        int64_t free_ps = 0, busy_ps = 0, idle_ps = 0;
        int64_t num_bytes[2] = {0, 0};
    };
    using Waiting = std::tuple<int64_t, int64_t, bool, int64_t, int64_t, uint32_t>;

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
