// Tables that follow from the numbers of a banked memory.
#include "banked_shape.hpp"

#include <algorithm>
#include <utility>

namespace tilewright {

MemoryShape::MemoryShape(const std::vector<int64_t>& numbers, std::vector<uint8_t> bank_table) {
    const int64_t* next = numbers.data();
    num_channels = *next++;
    num_groups = *next++;
    group_banks = *next++;
    stack_groups = *next++;
    span = Divisor(*next++);
    burst = Divisor(*next++);
    interleave = Divisor(*next++);
    for (int64_t& bursts : capacity) bursts = *next++;
    drain_high = *next++;
    drain_low = *next++;
    refresh_turns = *next++;
    refresh_interval = *next++;
    refresh_first = *next++;
    refresh_busy = *next++;
    for (int64_t MemoryTiming::*field :
         {&MemoryTiming::bl, &MemoryTiming::cl, &MemoryTiming::cwl, &MemoryTiming::rcd_read,
          &MemoryTiming::rcd_write, &MemoryTiming::rp, &MemoryTiming::ras, &MemoryTiming::rc,
          &MemoryTiming::ccd_s, &MemoryTiming::ccd_l, &MemoryTiming::ccd_r, &MemoryTiming::rrd_s,
          &MemoryTiming::rrd_l, &MemoryTiming::faw, &MemoryTiming::wtr_s, &MemoryTiming::wtr_l,
          &MemoryTiming::rtw, &MemoryTiming::wr, &MemoryTiming::rtp}) {
        timing.*field = *next++;
    }
    channels = Divisor(num_channels);
    num_banks = num_groups * group_banks;
    latency[0] = timing.cl;
    latency[1] = timing.cwl;
    rcd[0] = timing.rcd_read;
    rcd[1] = timing.rcd_write;
    for (int direction : {0, 1}) data_end[direction] = latency[direction] + timing.bl;
    least_data_end = std::min(data_end[0], data_end[1]);
    close[0] = timing.rtp;
    close[1] = data_end[1] + timing.wr;
    bank_of = std::move(bank_table);
    for (int64_t bank = 0; bank < num_banks; ++bank) {
        group_of.push_back(static_cast<uint8_t>(bank / group_banks));
    }
    fill_spacing();
    fill_runs();
    fill_uses();
}

void MemoryShape::fill_spacing() {
    for (int64_t one = 0; one < num_groups; ++one) {
        for (int64_t other = 0; other < num_groups; ++other) {
            const bool same_stack = one / stack_groups == other / stack_groups;
            ccd.push_back(one == other ? timing.ccd_l : same_stack ? timing.ccd_s : timing.ccd_r);
        }
    }
    least_ccd = *std::min_element(ccd.begin(), ccd.end());
    is_least_apart = true;
    for (int64_t one = 0; one < num_groups; ++one) {
        for (int64_t other = 0; other < one; ++other) {
            is_least_apart = is_least_apart && ccd_of(one, other) == least_ccd;
        }
    }
    pace = std::max(timing.bl, least_ccd);
}

void MemoryShape::fill_runs() {
    chunk_bursts = Divisor(burst.quotient(interleave.value()));
    const size_t size = static_cast<size_t>(chunk_bursts.value());
    paced.resize(bank_of.size());
    banks_from.resize(bank_of.size());
    for (size_t first = bank_of.size(); first-- > 0;) {
        const size_t end = (first / size + 1) * size;
        banks_from[first] = uint64_t{1} << bank_of[first];
        if (first + 1 < end) banks_from[first] |= banks_from[first + 1];
        size_t next = first + 1;
        for (bool keeps = true; keeps && next < end; next += keeps) {
            for (size_t earlier = first; earlier < next; ++earlier) {
                const int64_t apart_ps = static_cast<int64_t>(next - earlier) * pace;
                const int64_t least_ps =
                    ccd_of(group_of[bank_of[earlier]], group_of[bank_of[next]]);
                keeps = keeps && apart_ps >= least_ps;
            }
        }
        paced[first] = static_cast<uint16_t>(next - first);
    }
}

void MemoryShape::fill_uses() {
    UseList list;
    const auto size = static_cast<uint32_t>(chunk_bursts.value());
    for (uint32_t first = 0; first < bank_of.size(); first += size) {
        first_use.push_back(static_cast<uint32_t>(chunk_uses.size()));
        const UsedBanks found = find_used_banks(first, size, list);
        chunk_uses.insert(chunk_uses.end(), found.begin(), found.end());
    }
    first_use.push_back(static_cast<uint32_t>(chunk_uses.size()));
}

MemoryShape::UsedBanks MemoryShape::find_used_banks(uint32_t first, int64_t num_bursts,
                                                    UseList& list) const {
    size_t size = 0;
    for (uint16_t place = 0; place < num_bursts; ++place) {
        const uint8_t bank = bank_of[first + place];
        size_t at = 0;
        while (at < size && list[at].bank != bank) ++at;
        if (at == size) list[size++] = {bank, group_of[bank], place, place};
        list[at].last = place;
    }
    return {list.data(), size};
}

}  // namespace tilewright
