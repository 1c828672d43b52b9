// What the channels of a banked memory have in common: numbers and tables, no state.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "slab.hpp"

namespace nanobind {
class handle;
}

namespace tilewright {

// A whole number that an object of Python has by this name.
int64_t number_of(const nanobind::handle& object, const char* name);

constexpr int64_t kNeverPs = int64_t{3} << 61;  // beyond all decisions, as in Python
constexpr int64_t kLongAgoPs = -(int64_t{1} << 61);  // before any distance could matter
constexpr int kMaxBanks = 64;                        // of a channel: bits of a word

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

// The fields of BankedTimingSpec in engine/dram/spec.py, without the unit in their names.
#define TILEWRIGHT_TIMING_FIELDS(FIELD)                                                        \
    FIELD(bl) FIELD(cl) FIELD(cwl) FIELD(rcd_read) FIELD(rcd_write) FIELD(rp) FIELD(ras)       \
    FIELD(rc) FIELD(ccd_s) FIELD(ccd_l) FIELD(ccd_r) FIELD(rrd_s) FIELD(rrd_l) FIELD(faw)      \
    FIELD(wtr_s) FIELD(wtr_l) FIELD(rtw) FIELD(wr) FIELD(rtp)

struct MemoryTiming {
#define TILEWRIGHT_DECLARE(name) int64_t name;
    TILEWRIGHT_TIMING_FIELDS(TILEWRIGHT_DECLARE)
#undef TILEWRIGHT_DECLARE
};

// A bank that neighbouring bursts need: how far from one of them it comes up first.
struct BankUse {
    uint8_t bank;
    uint8_t group;
    uint16_t offset;
};

constexpr BankUse kNoUse{0, 0, UINT16_MAX};  // farther than any burst of a chunk: ends a list

// Parts of chunks that have so many bursts and begin at multiples of that: a whole chunk, halves,
// quarters, as far as they can be halved.
struct PartSize {
    Divisor bursts;
    uint32_t first;  // the number of its first part; parts are numbered size by size
};

constexpr uint8_t kNoSize = UINT8_MAX;

// Directions are numbers: 0 reads, 1 writes.
struct MemoryShape {
    explicit MemoryShape(const nanobind::handle& spec);  // a BankedSpec

    int64_t num_channels, num_groups, group_banks, stack_groups;
    Divisor channels, burst, interleave, chunk_bursts, span_chunks;  // the span: a row of all banks
    int64_t capacity[2];
    int64_t drain_high, drain_low;
    int64_t refresh_turns;  // 0: no refresh
    int64_t refresh_interval = 0, refresh_first = 0, refresh_busy = 0;
    MemoryTiming timing;

    int64_t num_banks;
    int64_t latency[2], data_end[2], rcd[2], close[2];  // by direction
    int64_t least_data_end;
    int64_t least_ccd, pace;
    int64_t reach;  // no command bounds another beyond that, nor what it counts
    bool is_least_apart;  // any two groups are: then the last command bounds all but its own group
    std::vector<uint8_t> bank_of;      // of a burst of the span
    std::vector<uint8_t> group_of;     // of a bank
    std::vector<uint16_t> paced;       // bursts from here in its chunk that can go at the bus's pace
    std::vector<uint64_t> banks_from;  // banks of the bursts from here to the end of its chunk
    std::vector<int64_t> ccd;          // group to group
    std::vector<PartSize> part_sizes;  // from whole chunks down to single bursts
    std::vector<uint8_t> size_of;      // by bursts: which of the sizes; kNoSize if it is none
    // of a part, the first one with the same banks in the same order, if such parts can follow each
    // other at the pace; else kNone
    std::vector<uint32_t> patterns;
    std::vector<uint64_t> part_masks;  // its banks

    int64_t ccd_of(int64_t one, int64_t other) const { return ccd[one * num_groups + other]; }

    // Which part the bursts of a chunk are, kNone if they are none.
    uint32_t part_of(uint32_t first, int64_t num_bursts) const {
        const uint8_t size = size_of[static_cast<size_t>(num_bursts)];
        if (size == kNoSize || part_sizes[size].bursts.remainder(first) != 0) return kNone;
        return part_sizes[size].first +
               static_cast<uint32_t>(part_sizes[size].bursts.quotient(first));
    }

    // The banks of the bursts from one to the end of its chunk, as they come up; kNoUse is the end.
    const BankUse* uses_from(uint32_t burst) const { return uses_.data() + forward_[burst]; }
    // The same backwards, from a burst to the first one of its chunk.
    const BankUse* uses_back_from(uint32_t burst) const { return uses_.data() + backward_[burst]; }

    // The banks of some bursts of a chunk.
    uint64_t banks_between(uint32_t first, uint32_t end) const {
        if (chunk_bursts.remainder(end) == 0) return banks_from[first];
        uint64_t banks = 0;
        for (const BankUse* use = uses_from(first); use->offset < end - first; ++use) {
            banks |= uint64_t{1} << use->bank;
        }
        return banks;
    }

  private:
    void fill_spacing();
    void fill_runs();
    void fill_uses();
    uint32_t list_uses(ptrdiff_t burst, ptrdiff_t end, ptrdiff_t step);
    void fill_parts();
    void fill_patterns();
    bool can_repeat(uint32_t first, int64_t num_bursts) const;

    std::vector<BankUse> uses_;  // lists, which chunks with the same banks share
    std::vector<uint32_t> forward_, backward_;  // where those of a burst begin
};

}  // namespace tilewright
