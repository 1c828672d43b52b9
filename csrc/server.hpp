// A server's specification, state and counters, and the queues in front of it.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "slab.hpp"

namespace tilewright {

constexpr int64_t kUnbounded = -1;
constexpr int32_t kSource = -1;

// A first-in-first-out ring that grows by doubling; push_sorted keeps it ordered from the back.
template <typename Item>
class Ring {
  public:
    bool empty() const { return size_ == 0; }
    size_t size() const { return size_; }
    const Item& front() const { return items_[head_]; }
    const Item& operator[](size_t place) const { return items_[index(place)]; }

    void pop_front() {
        head_ = index(1);
        --size_;
    }

    void push_back(const Item& item) {
        reserve_one();
        items_[index(size_++)] = item;
    }

    void push_sorted(const Item& item) {
        reserve_one();
        size_t place = size_++;
        for (; place > 0 && item < items_[index(place - 1)]; --place) {
            items_[index(place)] = items_[index(place - 1)];
        }
        items_[index(place)] = item;
    }

  private:
    size_t index(size_t place) const { return (head_ + place) & (items_.size() - 1); }

    void reserve_one() {
        if (size_ < items_.size()) return;
        std::vector<Item> larger(items_.empty() ? 4 : 2 * items_.size());
        for (size_t place = 0; place < size_; ++place) larger[place] = items_[index(place)];
        items_.swap(larger);
        head_ = 0;
    }

    std::vector<Item> items_;
    size_t head_ = 0;
    size_t size_ = 0;
};

struct Waiting {
    int64_t ready_ps;
    int64_t id;
    uint32_t packet;

    bool operator<(const Waiting& other) const {
        return ready_ps != other.ready_ps ? ready_ps < other.ready_ps : id < other.id;
    }
};

// The packets of one input and virtual channel; FIFO servers merge their inputs.
struct Queue {
    int32_t source;
    uint32_t channel;
    Ring<Waiting> waiting;
    Waiting last{-1, -1, kNone};  // the last packet that left

    bool before(int32_t other_source, uint32_t other_channel) const {
        return source != other_source ? source < other_source : channel < other_channel;
    }
};

struct alignas(64) Server {
    // what every hop touches: one cache line
    int64_t free_ps = 0;
    int64_t flit_ps = 0;
    int64_t latency_ps = 0;
    int64_t busy_ps = 0;
    int64_t num_bytes = 0;
    int64_t packets = 0;
    int64_t stretch_ps = 0;  // held beyond the hold, waiting for a tail from a slower link
    bool eager = true;       // never has to choose: one event per packet
    bool whole = false;
    bool bounded = false;  // the buffer behind it
    bool round_robin = false;
    bool grant_due = false;
    // waiting
    int64_t wait_ps = 0;
    int64_t queue = 0;
    int64_t queue_ps = 0;
    int64_t max_queue = 0;
    int64_t changed_ps = 0;
    Ring<int64_t> starts;  // an eager server's starts that lie ahead
    // arbitration and credits
    int64_t buffer_flits = kUnbounded;
    int64_t credit_ps = 0;
    std::vector<Queue> queues;  // ordered by (source, channel)
    int32_t last_source = kSource;
    int64_t last_channel = -1;
    std::vector<int64_t> credits;  // by channel
    nanobind::object service;

    void note_queue(int64_t at_ps, int64_t change) {
        if (at_ps > changed_ps) {
            queue_ps += queue * (at_ps - changed_ps);
            max_queue = std::max(max_queue, queue);
            changed_ps = at_ps;
        }
        queue += change;
    }

    void note_starts(int64_t now_ps) {
        while (!starts.empty() && starts.front() <= now_ps) {
            note_queue(starts.front(), -1);
            starts.pop_front();
        }
    }

    // When an eager server starts a packet that has to wait.
    int64_t book(int64_t ready_ps) {
        note_starts(ready_ps);
        note_queue(ready_ps, +1);
        starts.push_back(free_ps);
        wait_ps += free_ps - ready_ps;
        return free_ps;
    }

    int64_t& credit(uint32_t channel) {
        if (channel >= credits.size()) credits.resize(channel + 1, buffer_flits);
        return credits[channel];
    }

    Queue& queue_of(int32_t source, uint32_t channel) {
        auto place = std::find_if(queues.begin(), queues.end(), [&](const Queue& queue) {
            return !queue.before(source, channel);
        });
        if (place == queues.end() || place->source != source || place->channel != channel) {
            place = queues.insert(place, Queue{source, channel, {}, {-1, -1, kNone}});
        }
        return *place;
    }
};

}  // namespace tilewright
