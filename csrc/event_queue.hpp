// A calendar queue of events in the order (time, rank, id): buckets of equal width for the near
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

namespace tilewright {

struct Event {
    int64_t time_ps;
    uint32_t rank;  // phase, then what the phase orders by first: see Core
    uint32_t slot;  // what the event is about
    int64_t id;

    bool operator<(const Event& other) const {
        if (time_ps != other.time_ps) [[likely]] return time_ps < other.time_ps;
        if (rank != other.rank) return rank < other.rank;
        return id < other.id;
    }
    bool operator>(const Event& other) const { return other < *this; }
};

class EventQueue {
  public:
    EventQueue() { heads_.fill(kEnd); }

    bool empty() { return open_.empty() && !open_next(); }

    const Event& top() const { return open_.back(); }  // after empty() said no

    Event take() {
        const Event event = open_.back();
        open_.pop_back();
        return event;
    }

    void push(const Event& event) {
        const int64_t bucket = event.time_ps >> shift_;
        if (bucket <= open_bucket_) {
            insert_open(event);
        } else if (bucket < open_bucket_ + kBuckets) {
            push_near(event, static_cast<size_t>(bucket) & kMask);
        } else {
            ++num_far_pushes_;
            far_.push_back(event);
            std::push_heap(far_.begin(), far_.end(), std::greater<>());
        }
    }

  private:
    static constexpr int64_t kBuckets = 4096;
    static constexpr size_t kMask = kBuckets - 1;
    static constexpr uint32_t kEnd = UINT32_MAX;
    static constexpr int64_t kReviewAfter = 512;  // opened buckets
    static constexpr int kMaxShift = 40;

    struct Node {
        Event event;
        uint32_t next;
    };

    void insert_open(const Event& event) {
        size_t place = open_.size();
        open_.push_back(event);
        for (; place > 0 && open_[place - 1] < event; --place) open_[place] = open_[place - 1];
        open_[place] = event;
    }

    void push_near(const Event& event, size_t bucket) {
        uint32_t node = free_;
        if (node == kEnd) {
            node = static_cast<uint32_t>(nodes_.size());
            nodes_.push_back({event, heads_[bucket]});
        } else {
            free_ = nodes_[node].next;
            nodes_[node] = {event, heads_[bucket]};
        }
        heads_[bucket] = node;
        occupied_[bucket / 64] |= uint64_t{1} << bucket % 64;
        ++num_near_;
    }

    bool open_next() {
        if (num_near_ == 0 && far_.empty()) return false;
        if (++num_opened_ == kReviewAfter) review_width();
        if (num_near_ == 0) {
            open_bucket_ = far_.front().time_ps >> shift_;
        } else {
            open_bucket_ += distance_to_next();
        }
        while (!far_.empty() && far_.front().time_ps >> shift_ < open_bucket_ + kBuckets) {
            const Event event = take_far();
            push_near(event, static_cast<size_t>(event.time_ps >> shift_) & kMask);
        }
        empty_bucket(static_cast<size_t>(open_bucket_) & kMask);
        return true;
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

    void empty_bucket(size_t bucket) {
        for (uint32_t node = heads_[bucket]; node != kEnd;) {
            insert_or_append(nodes_[node].event);
            const uint32_t next = nodes_[node].next;
            nodes_[node].next = free_;
            free_ = node;
            node = next;
            --num_near_;
            ++num_opened_events_;
        }
        if (open_.size() > kSortAbove) std::sort(open_.begin(), open_.end(), std::greater<>());
        heads_[bucket] = kEnd;
        occupied_[bucket / 64] &= ~(uint64_t{1} << bucket % 64);
    }

    static constexpr size_t kSortAbove = 24;  // fewer are inserted one by one

    void insert_or_append(const Event& event) {
        if (open_.size() < kSortAbove) {
            insert_open(event);
        } else {
            open_.push_back(event);
        }
    }

    Event take_far() {
        std::pop_heap(far_.begin(), far_.end(), std::greater<>());
        const Event event = far_.back();
        far_.pop_back();
        return event;
    }

    // Narrower while buckets hold more than one or two events, wider if much lies beyond them.
    void review_width() {
        int shift = shift_;
        if (num_far_pushes_ > num_opened_events_ / 8) {
            shift = std::min(kMaxShift, shift_ + 2);
        } else if (2 * num_opened_events_ > 3 * num_opened_) {
            shift = std::max(0, shift_ - 1);
        }
        num_opened_ = num_opened_events_ = num_far_pushes_ = 0;
        if (shift != shift_) rebuild(shift);
    }

    void rebuild(int shift) {
        std::vector<Event> all = std::exchange(far_, {});
        for (uint32_t& head : heads_) {
            for (uint32_t node = head; node != kEnd; node = nodes_[node].next) {
                all.push_back(nodes_[node].event);
            }
            head = kEnd;
        }
        occupied_.fill(0);
        nodes_.clear();
        free_ = kEnd;
        num_near_ = 0;
        open_bucket_ = (((open_bucket_ + 1) << shift_) >> shift) - 1;  // all events lie behind it
        shift_ = shift;
        for (const Event& event : all) push(event);
    }

    int shift_ = 8;
    int64_t open_bucket_ = -1;
    int64_t num_near_ = 0;
    uint32_t free_ = kEnd;
    std::vector<Event> open_;  // the bucket whose turn it is, the next event last
    std::array<uint32_t, kBuckets> heads_;
    std::array<uint64_t, kBuckets / 64> occupied_{};
    std::vector<Node> nodes_;
    std::vector<Event> far_;
    int64_t num_opened_ = 0;
    int64_t num_opened_events_ = 0;
    int64_t num_far_pushes_ = 0;
};

}  // namespace tilewright
