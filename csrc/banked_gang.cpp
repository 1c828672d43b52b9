// How gangs of channels begin, and how they part.
#include "banked_gang.hpp"

namespace tilewright {

MemoryGangs::MemoryGangs(const MemoryShape& shape, Slab<MemoryAccess>& accesses)
    : end_(shape.num_channels), gang_of_(shape.num_channels, 0) {
    gangs_.reserve(shape.num_channels);  // they stay where they are
    gangs_.emplace_back(shape, accesses, static_cast<uint32_t>(shape.num_channels));
    ends_.push_back(end_);
    events_ps_.push_back(kNeverPs);
    wakes_ps_.push_back(kNeverPs - 1);
}

void MemoryGangs::part(int64_t channel) {
    const uint32_t whole = gang_of_[channel];
    const int64_t end = ends_[whole];
    const uint32_t rest = size();
    gangs_.push_back(gangs_[whole].part(static_cast<uint32_t>(end - channel)));
    ends_.push_back(std::exchange(ends_[whole], channel));
    events_ps_.push_back(events_ps_[whole]);
    wakes_ps_.push_back(wakes_ps_[whole]);
    for (; channel < end; ++channel) gang_of_[channel] = rest;
}

}  // namespace tilewright
