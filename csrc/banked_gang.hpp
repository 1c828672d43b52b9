// The channels of a banked memory, as few as there have to be.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "banked_channel.hpp"
#include "banked_shape.hpp"
#include "slab.hpp"

namespace tilewright {

// Channels share nothing. So neighbours that have had the same accesses are in the same state: they
// are a gang, which is one channel, until an access parts them. Others become one when they have
// come into the same state.
class MemoryGangs {
  public:
    MemoryGangs(const MemoryShape& shape, Slab<MemoryAccess>& accesses);

    uint32_t size() const { return static_cast<uint32_t>(gangs_.size()); }
    MemoryChannel& operator[](uint32_t gang) { return *gangs_[gang]; }
    ChannelCounts counters(int64_t channel) const;
    std::vector<int64_t> openings(int64_t channel) const;
    uint32_t number_of(int64_t channel) const { return gang_of_[channel]; }
    int64_t end_of(uint32_t gang) const { return ends_[gang]; }

    // Calls visit(gang) for the gangs of some channels.
    template <typename Visit>
    void for_gangs(int64_t first, int64_t end, Visit visit) const {
        for (int64_t channel = first; channel < end;) {
            const uint32_t gang = gang_of_[channel];
            visit(gang);
            channel = ends_[gang];
        }
    }

    // A gang begins with this channel from now on.
    void part_at(int64_t channel) {
        if (channel < end_ && channel > 0 && gang_of_[channel - 1] == gang_of_[channel]) {
            part(channel);
        }
    }

    // All gangs of these channels are about to have the same accesses: those that are alike join. All
    // their decisions before now_ps have been made.
    void join_alike(int64_t first, int64_t end, int64_t now_ps) {
        if (ends_[gang_of_[first]] == end || ++num_looks_ % kLook != 0) [[likely]] return;
        join(first, end, now_ps);
    }

    // When a gang decides next.
    int64_t event_ps(uint32_t gang) const { return events_ps_[gang]; }
    // Tells before when it has to.
    int64_t note_times(uint32_t gang) {
        events_ps_[gang] = gangs_[gang]->event_ps();
        return wakes_ps_[gang] = gangs_[gang]->least_done_ps() - 1;
    }
    int64_t next_event_ps() const { return least(events_ps_); }
    int64_t next_wake_ps() const { return least(wakes_ps_); }

  private:
    static int64_t least(const std::vector<int64_t>& times_ps) {
        int64_t found_ps = times_ps.front();
        for (int64_t time_ps : times_ps) found_ps = std::min(found_ps, time_ps);
        return found_ps;
    }
    [[gnu::noinline]] void part(int64_t channel);
    [[gnu::noinline]] void join(int64_t first, int64_t end, int64_t now_ps);
    void add(uint32_t gang, uint32_t whole);

    static constexpr uint32_t kLook = 8;  // not at every chance, since it may often be in vain

    int64_t end_;
    std::vector<std::unique_ptr<MemoryChannel>> gangs_;
    std::vector<uint32_t> gang_of_;     // of a channel
    std::vector<int64_t> ends_;         // of a gang
    std::vector<ChannelCounts> apart_;  // what a channel counted more than its gang
    std::vector<std::vector<int64_t>> apart_openings_;  // the same, by bank
    uint32_t num_looks_ = 0;
    std::vector<int64_t> events_ps_;
    std::vector<int64_t> wakes_ps_;
};

}  // namespace tilewright
