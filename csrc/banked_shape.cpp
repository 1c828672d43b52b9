// Tables that follow from the numbers of a banked memory.
#include "banked_shape.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

namespace tilewright {

MemoryShape::MemoryShape(const std::vector<int64_t>& numbers, std::vector<uint8_t> bank_table) {
    const int64_t* next = numbers.data();
    num_channels = *next++;
    num_groups = *next++;
    group_banks = *next++;
    stack_groups = *next++;
    const int64_t span_bytes = *next++;
    burst = Divisor(*next++);
    interleave = Divisor(*next++);
    span_chunks = Divisor(span_bytes / interleave.value());
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
    fill_patterns();
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
    reach = std::max(latency[0], latency[1]) +
            std::max({timing.ccd_s, timing.ccd_l, timing.ccd_r, timing.rcd_read, timing.rcd_write,
                      timing.rc, timing.faw, timing.rtw, data_end[1] + timing.wtr_s,
                      data_end[1] + timing.wtr_l});
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
    size_of.assign(static_cast<size_t>(chunk_bursts.value()) + 1, kNoSize);
    for (int64_t size = chunk_bursts.value();; size /= 2) {
        size_of[static_cast<size_t>(size)] = static_cast<uint8_t>(part_sizes.size());
        part_sizes.push_back({Divisor(size), static_cast<uint32_t>(first_use.size())});
        const auto step = static_cast<uint32_t>(size);
        for (uint32_t first = 0; first < bank_of.size(); first += step) {
            first_use.push_back(static_cast<uint32_t>(part_uses.size()));
            part_masks.push_back(banks_between(first, first + step));
            const UsedBanks found = find_used_banks(first, size, part_masks.back(), list);
            part_uses.insert(part_uses.end(), found.begin(), found.end());
        }
        if (size % 2 != 0) break;
    }
    first_use.push_back(static_cast<uint32_t>(part_uses.size()));
}

void MemoryShape::fill_patterns() {
    for (const PartSize& size : part_sizes) {
        std::unordered_map<std::string, uint32_t> found;
        const auto step = static_cast<ptrdiff_t>(size.bursts.value());
        for (auto first = bank_of.begin(); first != bank_of.end(); first += step) {
            const auto part = static_cast<uint32_t>(patterns.size());
            const uint32_t pattern =
                found.try_emplace(std::string(first, first + step), part).first->second;
            const bool repeats = can_repeat(part_banks(pattern), size.bursts.value());
            patterns.push_back(repeats ? pattern : kNone);
        }
    }
}

// If a part may start with the first burst after another one of the same banks, at the pace.
bool MemoryShape::can_repeat(UsedBanks uses, int64_t num_bursts) const {
    if (pace != timing.bl) return false;
    for (const BankUse& before : uses) {
        for (const BankUse& use : uses) {
            const int64_t apart_ps = (num_bursts + use.first - before.last) * pace;
            if (apart_ps < ccd_of(before.group, use.group)) return false;
        }
    }
    return true;
}

MemoryShape::UsedBanks MemoryShape::find_used_banks(uint32_t first, int64_t num_bursts,
                                                    uint64_t most, UseList& list) const {
    const uint8_t* banks = bank_of.data() + first;
    const auto end = static_cast<uint16_t>(num_bursts);
    size_t size = 0;
    uint64_t seen = 0;
    for (uint16_t place = 0; place < end && seen != most; ++place) {
        const uint64_t bit = uint64_t{1} << banks[place];
        if (seen & bit) continue;
        seen |= bit;
        list[size++] = {banks[place], group_of[banks[place]], place, place};
    }
    for (uint16_t place = end; seen; --place) {  // backwards: now the last ones come up first
        const uint8_t bank = banks[place - 1];
        const uint64_t bit = uint64_t{1} << bank;
        if (!(seen & bit)) continue;
        seen &= ~bit;
        const auto use = std::find_if(list.begin(), list.begin() + size,
                                      [bank](const BankUse& one) { return one.bank == bank; });
        use->last = static_cast<uint16_t>(place - 1);
    }
    return {list.data(), size};
}

}  // namespace tilewright
