// A calendar queue of events in the order (time, rank, order): buckets of equal width for the near
// future, a heap for the rest. The width follows the load, so that a push and a take cost the same
// however many events there are. The order is total, so the width can change no result.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "slab.hpp"

namespace tilewright {

// An event and, in the same cache line, the packet that most events are about.
struct alignas(64) Event {
    int64_t time_ps;
    int64_t order;  // the last part of the key
    uint32_t rank;  // phase, then what the phase orders by first: see Core
    uint32_t next = kNone;
    uint32_t subject = kNone;  // the packet's task; the task, run, gate of other events
    // of a packet
    uint32_t flits = 0;
    uint32_t hop = 0;
    uint32_t route : 30 = 0;
    uint32_t exchanged : 1 = 0;  // a packet of an exchange, on its way there
    uint32_t returning : 1 = 0;  // or back
    int64_t id = 0;
    int64_t tail_in_ps = 0;  // arrival of its tail at the server it is in front of
    int64_t num_bytes = 0;   // 0: a hold

    bool operator<(const Event& other) const {
        if (time_ps != other.time_ps) [[likely]] return time_ps < other.time_ps;
        if (rank != other.rank) return rank < other.rank;
        return order < other.order;
    }
};

class EventQueue {
  public:
    EventQueue() { heads_.fill(kNone); }

    uint32_t add(const Event& event) { return events_.add(event); }
    void remove(uint32_t slot) { events_.remove(slot); }
    Event& operator[](uint32_t slot) { return events_[slot]; }
    const Event& operator[](uint32_t slot) const { return events_[slot]; }

    // The next event, or kNone.
    uint32_t top() { return !open_.empty() || open_next() ? open_.front() : kNone; }

    void take_top() {
        if (open_.size() > 1) std::pop_heap(open_.begin(), open_.end(), Later{events_});
        open_.pop_back();
    }

    void push(uint32_t slot) {
        const int64_t bucket = events_[slot].time_ps >> shift_;
        if (bucket <= open_bucket_) {
            push_heap(open_, slot);
        } else if (bucket < open_bucket_ + kBuckets) {
            push_near(slot, static_cast<size_t>(bucket) & kMask);
        } else {
            ++num_far_pushes_;
            push_heap(far_, slot);
        }
    }

  private:
    static constexpr int64_t kBuckets = 4096;
    static constexpr size_t kMask = kBuckets - 1;
    static constexpr int64_t kReviewAfter = 512;  // opened buckets
    static constexpr int kMaxShift = 40;

    struct Later {
        const Slab<Event>& events;
        bool operator()(uint32_t left, uint32_t right) const { return events[right] < events[left]; }
    };

    void push_heap(std::vector<uint32_t>& heap, uint32_t slot) {
        heap.push_back(slot);
        if (heap.size() > 1) std::push_heap(heap.begin(), heap.end(), Later{events_});
    }

    // A bucket is a list in no order; most hold one event.
    void push_near(uint32_t slot, size_t bucket) {
        events_[slot].next = heads_[bucket];
        heads_[bucket] = slot;
        occupied_[bucket / 64] |= uint64_t{1} << bucket % 64;
        ++num_near_;
    }

    bool open_next() {
        if (++num_opened_ >= kReviewAfter) review_width();
        if (num_near_ > 0) {
            open_bucket_ += distance_to_next();
        } else if (!far_.empty()) {
            open_bucket_ = events_[far_.front()].time_ps >> shift_;
        } else {
            return false;
        }
        while (!far_.empty()) {
            const uint32_t slot = far_.front();
            const int64_t bucket = events_[slot].time_ps >> shift_;
            if (bucket >= open_bucket_ + kBuckets) break;
            std::pop_heap(far_.begin(), far_.end(), Later{events_});
            far_.pop_back();
            push_near(slot, static_cast<size_t>(bucket) & kMask);
        }
        empty_bucket(static_cast<size_t>(open_bucket_) & kMask);
        return true;
    }

    void empty_bucket(size_t bucket) {
        for (uint32_t slot = heads_[bucket]; slot != kNone; slot = events_[slot].next) {
            open_.push_back(slot);
        }
        heads_[bucket] = kNone;
        occupied_[bucket / 64] &= ~(uint64_t{1} << bucket % 64);
        const auto count = static_cast<int64_t>(open_.size());
        num_near_ -= count;
        num_opened_events_ += count;
        if (count > 1) std::make_heap(open_.begin(), open_.end(), Later{events_});
    }

    // From the open bucket, which is empty, to the next one that is not.
    int64_t distance_to_next() const {
        const size_t start = (static_cast<size_t>(open_bucket_) + 1) & kMask;
        size_t word = start / 64;
        uint64_t bits = occupied_[word] & (~uint64_t{0} << start % 64);
        while (bits == 0) {
            word = (word + 1) % occupied_.size();
            bits = occupied_[word];
        }
        const size_t found = word * 64 + static_cast<size_t>(std::countr_zero(bits));
        return static_cast<int64_t>((found - start) & kMask) + 1;
    }

    // Wider if much lies beyond the buckets, narrower while many hold several events.
    void review_width() {
        int shift = shift_;
        if (num_far_pushes_ > num_opened_events_ / 8) {
            shift = std::min(kMaxShift, shift_ + 2);
        } else if (4 * num_opened_events_ > 5 * num_opened_) {
            shift = std::max(0, shift_ - 1);
        }
        num_opened_ = num_opened_events_ = num_far_pushes_ = 0;
        if (shift != shift_) rebuild(shift);
    }

    // Called while no bucket is open: all events lie behind the last one that was.
    void rebuild(int shift) {
        std::vector<uint32_t> all = std::exchange(far_, {});
        for (uint32_t& head : heads_) {
            for (uint32_t slot = head; slot != kNone; slot = events_[slot].next) all.push_back(slot);
            head = kNone;
        }
        occupied_.fill(0);
        num_near_ = 0;
        open_bucket_ = (((open_bucket_ + 1) << shift_) >> shift) - 1;
        shift_ = shift;
        for (uint32_t slot : all) push(slot);
        num_far_pushes_ = 0;
    }

    int shift_ = 8;
    int64_t open_bucket_ = -1;
    int64_t num_near_ = 0;
    std::vector<uint32_t> open_;  // the bucket whose turn it is, a heap
    std::array<uint32_t, kBuckets> heads_;
    std::array<uint64_t, kBuckets / 64> occupied_{};
    Slab<Event> events_;
    std::vector<uint32_t> far_;  // a heap
    int64_t num_opened_ = 0;
    int64_t num_opened_events_ = 0;
    int64_t num_far_pushes_ = 0;
};

}  // namespace tilewright
