// A queue of few events in the order (time, rank, id), with their keys beside each other: a push and
// a take touch one or two cache lines. However many there are, neither moves more than a few.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "event_queue.hpp"

namespace tilewright {

// Of events in a slab, which it does not own.
class Agenda {
  public:
    explicit Agenda(const Slab<Event>& events) : events_(events) {}

    // The next event, or kNone.
    uint32_t top() const { return size_ > 0 ? near_[size_ - 1].slot : kNone; }

    // If the next event comes before another.
    bool has_before(const Event& limit) const {
        if (size_ == 0) return false;
        const Entry& next = near_[size_ - 1];
        if (next.time_ps != limit.time_ps) [[likely]] return next.time_ps < limit.time_ps;
        return next.rank != limit.rank ? next.rank < limit.rank : next.id < limit.id;
    }

    void take_top() {
        if (--size_ == 0 && !far_.empty()) [[unlikely]] fetch_far();
    }

    void push(uint32_t slot) {
        const Event& event = events_[slot];
        const Entry entry{event.time_ps, event.id, event.rank, slot};
        if ((size_ == kNear || !far_.empty()) && is_far(entry)) [[unlikely]] return push_far(entry);
        uint32_t place = size_++;
        for (; place > 0 && near_[place - 1] < entry; --place) near_[place] = near_[place - 1];
        near_[place] = entry;
    }

  private:
    static constexpr uint32_t kNear = 32;

    struct Entry {
        int64_t time_ps;
        int64_t id;
        uint32_t rank;
        uint32_t slot;

        bool operator<(const Entry& other) const {
            if (time_ps != other.time_ps) [[likely]] return time_ps < other.time_ps;
            return rank != other.rank ? rank < other.rank : id < other.id;
        }
        bool operator>(const Entry& other) const { return other < *this; }
    };

    // Makes room for an entry that is not.
    [[gnu::noinline]] bool is_far(const Entry& entry) {
        if (near_[0] < entry) return true;
        if (size_ < kNear) return false;
        push_far(near_[0]);
        std::copy(near_.begin() + 1, near_.end(), near_.begin());
        --size_;
        return false;
    }

    void push_far(const Entry& entry) {
        far_.push_back(entry);
        std::push_heap(far_.begin(), far_.end(), std::greater<>{});
    }

    [[gnu::noinline]] void fetch_far() {
        size_ = std::min<uint32_t>(kNear / 2, static_cast<uint32_t>(far_.size()));
        for (uint32_t place = size_; place-- > 0;) {
            std::pop_heap(far_.begin(), far_.end(), std::greater<>{});
            near_[place] = far_.back();
            far_.pop_back();
        }
    }

    const Slab<Event>& events_;
    uint32_t size_ = 0;
    std::array<Entry, kNear> near_;  // the last is the next
    std::vector<Entry> far_;         // a heap: all come after those
};

}  // namespace tilewright
