// What waits in a channel of a banked memory: chunks of accesses, and their order.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace tilewright {

struct Completion {
    int64_t access_id;
    int64_t done_ps;     // its last data
    int64_t refresh_ps;  // how long refresh held that up
    int64_t decided_ps;  // when that was clear
    uint32_t tag;        // what the caller gave with the access
};

struct alignas(64) MemoryAccess {
    Completion completion;
    uint32_t chunks_left;    // of all channels
    uint32_t last_position;  // of the chunk whose data are done last
    int64_t accepted_ps;
};

// Neighbouring bursts of an access in one channel; they go in order.
struct alignas(64) MemoryChunk {
    uint64_t left;  // banks of the bursts that wait
    uint64_t round;
    int64_t access_id;
    int64_t blocked_ps;
    int64_t row;
    uint32_t access;
    uint32_t position;  // in the access; of a gang's first channel
    uint32_t first;    // burst of the span
    uint32_t pattern;  // of its banks, while none of its bursts has been issued
    uint16_t num_bursts;
    uint16_t issued;

    uint32_t next() const { return first + issued; }
    int64_t num_left() const { return num_bursts - issued; }
    bool is_begun() const { return issued > 0; }  // of one that waits
    bool is_older(const MemoryChunk& other) const {
        return std::tie(round, access_id, position) <
               std::tie(other.round, other.access_id, other.position);
    }
};

// Slots of chunks in order of age: a ring. Nearly all come at the end and go at the front.
class AgeOrder {
  public:
    uint32_t size() const { return size_; }
    uint32_t operator[](uint32_t place) const { return slots_[index(place)]; }

    void insert(uint32_t place, uint32_t slot) {
        if (size_ > mask_) [[unlikely]] grow();
        for (uint32_t at = size_++; at > place; --at) slots_[index(at)] = slots_[index(at - 1)];
        slots_[index(place)] = slot;
    }

    void erase(uint32_t place) {
        for (uint32_t at = place; at > 0; --at) slots_[index(at)] = slots_[index(at - 1)];
        front_ = index(1);
        --size_;
    }

  private:
    uint32_t index(uint32_t place) const { return (front_ + place) & mask_; }

    [[gnu::noinline]] void grow() {
        std::vector<uint32_t> larger(2 * size_);
        for (uint32_t place = 0; place < size_; ++place) larger[place] = (*this)[place];
        slots_ = std::move(larger);
        mask_ = 2 * size_ - 1;
        front_ = 0;
    }

    static constexpr uint32_t kFirstSize = 16;

    std::vector<uint32_t> slots_ = std::vector<uint32_t>(kFirstSize);
    uint32_t mask_ = kFirstSize - 1;
    uint32_t front_ = 0;
    uint32_t size_ = 0;
};

}  // namespace tilewright
