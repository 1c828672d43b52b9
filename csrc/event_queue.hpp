// Calendar queues of events in the order (time, rank, id): buckets of equal width for the near
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
    int64_t id;     // the last part of the key: a packet, a task, a gate
    uint32_t rank;  // phase, then what the phase orders by first: see Core
    uint32_t next = kNone;
    uint32_t subject = kNone;  // the packet's task; the task, run, gate of other events
    // of a packet
    uint32_t flits = 0;
    uint32_t hop = 0;
    uint32_t route : 30 = 0;
    uint32_t exchanged : 1 = 0;  // a packet of an exchange, on its way there
    uint32_t returning : 1 = 0;  // or back
    int64_t tail_in_ps = 0;  // arrival of its tail at the server it is in front of
    int64_t num_bytes = 0;   // 0: a hold
    uint32_t island = kNone;  // to which it belongs
    uint32_t duty = 0;        // what an island asks for: see island.hpp

    bool operator<(const Event& other) const {
        if (time_ps != other.time_ps) [[likely]] return time_ps < other.time_ps;
        if (rank != other.rank) return rank < other.rank;
        return id < other.id;
    }
};

static_assert(sizeof(Event) == 64);

// Of events in a slab, which it does not own.
template <int64_t kBuckets>
class Calendar {
  public:
    explicit Calendar(Slab<Event>& events) : events_(events) { heads_.fill(kNone); }

    // The next event, or kNone.
    uint32_t top() {
        if (first_ == kNone) open_next();
        return first_;
    }

    void take_top() {
        first_ = kNone;
        if (!open_.empty()) [[unlikely]] first_ = pop_heap(open_);
    }

    [[gnu::always_inline]] void push(Event& event, uint32_t slot) {
        const int64_t bucket = event.time_ps >> shift_;
        if (static_cast<uint64_t>(bucket - open_bucket_ - 1) < kBuckets - 1) [[likely]] {
            push_near(event, slot, static_cast<size_t>(bucket) & kMask);
        } else if (bucket <= open_bucket_) {
            push_open(slot);
        } else {
            push_far(slot, bucket);
        }
    }

  private:
    static constexpr size_t kMask = kBuckets - 1;
    static constexpr int64_t kReviewAfter = 512;  // opened buckets
    static constexpr int64_t kForgetAfter = 128;  // reviews
    static constexpr int kMaxShift = 40;

    struct Later {
        const Slab<Event>& events;
        bool operator()(uint32_t left, uint32_t right) const { return events[right] < events[left]; }
    };

    void push_heap(std::vector<uint32_t>& heap, uint32_t slot) {
        heap.push_back(slot);
        if (heap.size() > 1) std::push_heap(heap.begin(), heap.end(), Later{events_});
    }

    uint32_t pop_heap(std::vector<uint32_t>& heap) {
        if (heap.size() > 1) std::pop_heap(heap.begin(), heap.end(), Later{events_});
        const uint32_t slot = heap.back();
        heap.pop_back();
        return slot;
    }

    // Into the open bucket, whose first event stands apart: most have no other.
    [[gnu::noinline]] void push_open(uint32_t slot) {
        if (first_ == kNone) {
            first_ = slot;
        } else {
            const bool is_first = events_[slot] < events_[first_];
            push_heap(open_, is_first ? std::exchange(first_, slot) : slot);
        }
    }

    [[gnu::noinline]] void push_far(uint32_t slot, int64_t bucket) {
        ++num_far_pushes_;
        far_bucket_ = std::min(far_bucket_, bucket);
        push_heap(far_, slot);
    }

    // A bucket is a list in no order; most hold one event.
    void push_near(Event& event, uint32_t slot, size_t bucket) {
        event.next = heads_[bucket];
        heads_[bucket] = slot;
        occupied_[bucket / 64] |= uint64_t{1} << bucket % 64;
        ++num_near_;
    }

    void open_next() {
        if (++num_opened_ >= kReviewAfter) [[unlikely]] review_width();
        if (num_near_ > 0) [[likely]] {
            open_bucket_ += distance_to_next();
        } else if (!far_.empty()) {
            open_bucket_ = far_bucket_;
        } else {
            return;
        }
        if (far_bucket_ - kBuckets < open_bucket_) [[unlikely]] fetch_far();
        const size_t bucket = static_cast<size_t>(open_bucket_) & kMask;
        first_ = std::exchange(heads_[bucket], kNone);
        occupied_[bucket / 64] &= ~(uint64_t{1} << bucket % 64);
        --num_near_;
        if (events_[first_].next != kNone) [[unlikely]] open_others();
    }

    // Put events into the buckets that have come near.
    [[gnu::noinline]] void fetch_far() {
        for (; far_bucket_ - kBuckets < open_bucket_; note_far()) {
            const uint32_t slot = pop_heap(far_);
            push_near(events_[slot], slot, static_cast<size_t>(far_bucket_) & kMask);
        }
    }

    void note_far() {
        far_bucket_ = far_.empty() ? INT64_MAX : events_[far_.front()].time_ps >> shift_;
    }

    [[gnu::noinline]] void open_others() {
        const int64_t time_ps = events_[first_].time_ps;
        for (uint32_t slot = events_[first_].next; slot != kNone; slot = events_[slot].next) {
            num_others_ += events_[slot].time_ps != time_ps;  // no width parts those of one time
            push_open(slot);
            --num_near_;
        }
    }

    // From the open bucket, which is empty, to the next one that is not.
    int64_t distance_to_next() const {
        const size_t start = static_cast<size_t>(open_bucket_) & kMask;
        size_t word = start / 64;
        uint64_t bits = occupied_[word] & (~uint64_t{0} << start % 64);
        while (bits == 0) {
            word = (word + 1) % occupied_.size();
            bits = occupied_[word];
        }
        const size_t found = word * 64 + static_cast<size_t>(std::countr_zero(bits));
        return static_cast<int64_t>((found - start) & kMask);
    }

    // Wider if much lies beyond the buckets, narrower while many hold several events. A width at
    // which much lay beyond is not tried again soon, or the two rules would take turns for ever.
    [[gnu::noinline]] void review_width() {
        int shift = shift_;
        if (++num_reviews_ % kForgetAfter == 0) least_shift_ = 0;
        if (num_far_pushes_ > (num_opened_ + num_others_) / 8) {
            least_shift_ = std::min(kMaxShift, shift_ + 1);
            shift = std::min(kMaxShift, shift_ + 2);
        } else if (num_others_ > num_opened_ / 4) {
            shift = std::max(least_shift_, shift_ - 1);
        }
        num_opened_ = num_others_ = num_far_pushes_ = 0;
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
        far_bucket_ = INT64_MAX;
        for (uint32_t slot : all) push(events_[slot], slot);
        num_far_pushes_ = 0;
    }

    int shift_ = 8;
    int least_shift_ = 0;
    int64_t num_reviews_ = 0;
    int64_t open_bucket_ = -1;
    int64_t far_bucket_ = INT64_MAX;  // of the first event beyond the buckets
    int64_t num_near_ = 0;
    int64_t num_opened_ = 0;
    uint32_t first_ = kNone;      // of the bucket whose turn it is
    std::vector<uint32_t> open_;  // the others in it, a heap
    std::array<uint32_t, kBuckets> heads_;
    std::array<uint64_t, kBuckets / 64> occupied_{};
    Slab<Event>& events_;
    std::vector<uint32_t> far_;  // a heap
    int64_t num_others_ = 0;     // in opened buckets, at another time than their first
    int64_t num_far_pushes_ = 0;
};

// The queue of a core, with the events of all its queues.
class EventQueue {
  public:
    uint32_t add(const Event& event) { return events_.add(event); }
    void remove(uint32_t slot) { events_.remove(slot); }
    Event& operator[](uint32_t slot) { return events_[slot]; }
    const Event& operator[](uint32_t slot) const { return events_[slot]; }
    Slab<Event>& events() { return events_; }

    uint32_t top() { return calendar_.top(); }
    void take_top() { calendar_.take_top(); }
    void push(uint32_t slot) { calendar_.push(events_[slot], slot); }
    [[gnu::always_inline]] void push(Event& event, uint32_t slot) { calendar_.push(event, slot); }

  private:
    Slab<Event> events_;
    Calendar<4096> calendar_{events_};
};

}  // namespace tilewright
