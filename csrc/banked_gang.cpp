// How gangs of channels begin, part and join.
#include "banked_gang.hpp"

namespace tilewright {

MemoryGangs::MemoryGangs(const MemoryShape& shape, Slab<MemoryAccess>& accesses)
    : end_(shape.num_channels), gang_of_(end_, 0), ends_{end_}, apart_(end_),
      apart_openings_(end_, std::vector<int64_t>(shape.num_banks)) {
    const auto num_members = static_cast<uint32_t>(end_);
    gangs_.push_back(std::make_unique<MemoryChannel>(shape, accesses, num_members));
    events_ps_.push_back(kNeverPs);
    wakes_ps_.push_back(kNeverPs - 1);
}

ChannelCounts MemoryGangs::counters(int64_t channel) const {
    ChannelCounts counts = gangs_[gang_of_[channel]]->counters();
    for (size_t index = 0; index < counts.size(); ++index) counts[index] += apart_[channel][index];
    return counts;
}

std::vector<int64_t> MemoryGangs::openings(int64_t channel) const {
    std::vector<int64_t> counts = gangs_[gang_of_[channel]]->openings();
    for (size_t bank = 0; bank < counts.size(); ++bank) {
        counts[bank] += apart_openings_[channel][bank];
    }
    return counts;
}

void MemoryGangs::part(int64_t channel) {
    const uint32_t whole = gang_of_[channel];
    const int64_t end = ends_[whole];
    const uint32_t rest = size();
    gangs_.push_back(gangs_[whole]->part(static_cast<uint32_t>(end - channel)));
    ends_.push_back(std::exchange(ends_[whole], channel));
    events_ps_.push_back(events_ps_[whole]);
    wakes_ps_.push_back(wakes_ps_[whole]);
    for (; channel < end; ++channel) gang_of_[channel] = rest;
}

void MemoryGangs::join(int64_t first, int64_t end, int64_t now_ps) {
    for (int64_t channel = ends_[gang_of_[first]]; channel < end;) {
        const uint32_t gang = gang_of_[channel - 1], next = gang_of_[channel];
        channel = ends_[next];
        if (gangs_[gang]->join(*gangs_[next], now_ps)) add(next, gang);
    }
}

// A gang becomes the last members of another.
void MemoryGangs::add(uint32_t gang, uint32_t whole) {
    const ChannelCounts before = gangs_[gang]->counters(), after = gangs_[whole]->counters();
    const std::vector<int64_t> opened = gangs_[gang]->openings();
    const std::vector<int64_t> whole_opened = gangs_[whole]->openings();
    for (int64_t channel = ends_[whole]; channel < ends_[gang]; ++channel) {
        gang_of_[channel] = whole;
        for (size_t index = 0; index < after.size(); ++index) {
            apart_[channel][index] += before[index] - after[index];
        }
        for (size_t bank = 0; bank < opened.size(); ++bank) {
            apart_openings_[channel][bank] += opened[bank] - whole_opened[bank];
        }
    }
    ends_[whole] = ends_[gang];
    const uint32_t last = size() - 1;
    if (gang != last) {
        gangs_[gang] = std::move(gangs_[last]);
        for (uint32_t& number : gang_of_) number = number == last ? gang : number;
        ends_[gang] = ends_[last];
        events_ps_[gang] = events_ps_[last];
        wakes_ps_[gang] = wakes_ps_[last];
    }
    gangs_.pop_back();
    ends_.pop_back();
    events_ps_.pop_back();
    wakes_ps_.pop_back();
}

}  // namespace tilewright
