// Tables that follow from the numbers of a banked memory.
#include "banked_shape.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <unordered_map>

namespace nb = nanobind;

namespace tilewright {

int64_t number_of(const nb::handle& object, const char* name) {
    return nb::cast<int64_t>(object.attr(name));
}

MemoryShape::MemoryShape(const nb::handle& spec) {
    num_channels = number_of(spec, "pseudo_channels");
    num_groups = number_of(spec, "num_groups");
    group_banks = number_of(spec, "banks");
    stack_groups = number_of(spec, "bank_groups");
    burst = Divisor(number_of(spec, "burst_bytes"));
    interleave = Divisor(number_of(spec, "interleave_bytes"));
    span_chunks = Divisor(number_of(spec, "span_bytes") / interleave.value());
    capacity[0] = number_of(spec, "read_queue_bursts");
    capacity[1] = number_of(spec, "write_queue_bursts");
    drain_high = number_of(spec, "drain_high_bursts");
    drain_low = number_of(spec, "drain_low_bursts");
    refresh_turns = number_of(spec, "refresh_turns");
    const nb::object refresh = spec.attr("refresh");
    if (!refresh.is_none()) {
        refresh_interval = number_of(refresh, "interval_ps");
        refresh_first = number_of(refresh, "first_ps");
        refresh_busy = number_of(refresh, "busy_ps");
    }
    const nb::object distances = spec.attr("timing");
#define TILEWRIGHT_READ(name) timing.name = number_of(distances, #name "_ps");
    TILEWRIGHT_TIMING_FIELDS(TILEWRIGHT_READ)
#undef TILEWRIGHT_READ
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
    bank_of = nb::cast<std::vector<uint8_t>>(spec.attr("bank_table"));
    for (int64_t bank = 0; bank < num_banks; ++bank) {
        group_of.push_back(static_cast<uint8_t>(bank / group_banks));
    }
    fill_spacing();
    fill_runs();
    fill_uses();
    fill_parts();
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
    std::unordered_map<std::string, ptrdiff_t> known;  // the first chunk with the same banks
    const auto size = static_cast<ptrdiff_t>(chunk_bursts.value());
    for (ptrdiff_t first = 0; first < std::ssize(bank_of); first += size) {
        const auto banks = bank_of.begin() + first;
        const auto [found, is_new] = known.try_emplace(std::string(banks, banks + size), first);
        for (ptrdiff_t place = 0; place < size; ++place) {
            const ptrdiff_t burst = first + place, same = found->second + place;
            forward_.push_back(is_new ? list_uses(burst, first + size, 1) : forward_[same]);
            backward_.push_back(is_new ? list_uses(burst, first - 1, -1) : backward_[same]);
        }
    }
}

uint32_t MemoryShape::list_uses(ptrdiff_t burst, ptrdiff_t end, ptrdiff_t step) {
    const auto start = static_cast<uint32_t>(uses_.size());
    uint64_t seen = 0;
    for (ptrdiff_t at = burst; at != end; at += step) {
        const uint8_t bank = bank_of[at];
        const uint64_t bit = uint64_t{1} << bank;
        if (seen & bit) continue;
        seen |= bit;
        uses_.push_back({bank, group_of[bank], static_cast<uint16_t>(std::abs(at - burst))});
    }
    uses_.push_back(kNoUse);
    return start;
}

void MemoryShape::fill_parts() {
    size_of.assign(static_cast<size_t>(chunk_bursts.value()) + 1, kNoSize);
    uint32_t num_parts = 0;
    for (int64_t size = chunk_bursts.value();; size /= 2) {
        size_of[static_cast<size_t>(size)] = static_cast<uint8_t>(part_sizes.size());
        part_sizes.push_back({Divisor(size), num_parts});
        num_parts += static_cast<uint32_t>(std::ssize(bank_of) / size);
        if (size % 2 != 0) break;
    }
}

void MemoryShape::fill_patterns() {
    for (const PartSize& size : part_sizes) {
        std::unordered_map<std::string, uint32_t> found;
        const auto step = static_cast<ptrdiff_t>(size.bursts.value());
        for (ptrdiff_t first = 0; first < std::ssize(bank_of); first += step) {
            const auto part = static_cast<uint32_t>(patterns.size());
            const auto banks = bank_of.begin() + first;
            const uint32_t pattern =
                found.try_emplace(std::string(banks, banks + step), part).first->second;
            const auto burst = static_cast<uint32_t>(first);
            part_masks.push_back(banks_between(burst, burst + static_cast<uint32_t>(step)));
            const bool repeats = can_repeat(burst, step);
            patterns.push_back(repeats ? pattern : kNone);
        }
    }
}

// If bursts of a chunk may be followed by others of the same banks, at the pace.
bool MemoryShape::can_repeat(uint32_t first, int64_t num_bursts) const {
    if (pace != timing.bl) return false;
    const uint32_t last = first + static_cast<uint32_t>(num_bursts) - 1;
    for (const BankUse* before = uses_back_from(last); before->offset < num_bursts; ++before) {
        for (const BankUse* use = uses_from(first); use->offset < num_bursts; ++use) {
            const int64_t apart_ps = (before->offset + 1 + use->offset) * pace;
            if (apart_ps < ccd_of(before->group, use->group)) return false;
        }
    }
    return true;
}

}  // namespace tilewright
