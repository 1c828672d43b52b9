// A server's specification, state and counters, and the queues in front of it.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "credit.hpp"
#include "ring.hpp"
#include "slab.hpp"

namespace tilewright {

constexpr int64_t kUnbounded = -1;
constexpr int32_t kSource = -1;

struct Waiting {
    int64_t ready_ps;
    int64_t id;
    uint32_t packet;
    // what it needs behind the server, so that the packet is left alone until it starts
    uint32_t flits = 0;
    uint32_t buffer = kNone;

    bool operator<(const Waiting& other) const {
        return ready_ps != other.ready_ps ? ready_ps < other.ready_ps : id < other.id;
    }
};

// The packets of one input and virtual channel, those on their way included; FIFO servers merge
// their inputs. The key orders queues by (source, channel).
struct alignas(64) Queue {
    int64_t key;
    int64_t last_ready_ps = -1;  // of the last packet that left
    int64_t last_id = -1;
    uint32_t num_counted = 0;  // of those that wait, from the first: their arrival is in counters
    Ring<Waiting> waiting{};
};

constexpr int64_t queue_key(int32_t source, uint32_t channel) {
    return (int64_t{source} << 32) + channel;
}

struct alignas(64) Server {
    // all that a packet needs that meets nobody: one cache line
    int64_t free_ps = 0;
    int64_t flit_ps = 0;
    int64_t latency_ps = 0;
    int64_t busy_ps = 0;
    int64_t num_bytes = 0;
    int64_t packets = 0;
    uint32_t num_queued = 0;  // packets in all queues
    uint32_t lone = kNone;    // the packet that starts before those, as soon as it is ready
    uint32_t last_queue = kNone;  // the one granted last
    bool eager : 1 = true;        // never has to choose: one event per packet
    bool whole : 1 = false;
    bool round_robin : 1 = false;
    bool has_service : 1 = false;
    bool is_memory : 1 = false;
    bool is_link : 1 = true;           // neither of the two
    bool has_many_queues : 1 = false;  // more than occupied can tell
    // and one that meets others: another
    int64_t check_ps = kNever;     // when it next looks for a packet to take
    int64_t booked_ps = kNever;    // when the event of a packet in front of it is due
    uint64_t occupied = 0;         // which of the first 64 queues are not empty
    Queue* first_queue = nullptr;  // of queues
    int64_t stretch_ps = 0;  // held beyond the hold, waiting for a tail from a slower link
    uint32_t island = kNone;
    bool is_stalled = false;  // a packet that could start otherwise lacks credits
    // waiting
    std::vector<Queue> queues;
    std::vector<uint32_t> buffers;  // behind it, by channel, if they are bounded
    int64_t wait_ps = 0;
    int64_t queue = 0;
    int64_t queue_ps = 0;
    int64_t max_queue = 0;
    int64_t changed_ps = 0;
    std::vector<uint32_t> channels;         // their numbers in routes
    Ring<int64_t> starts;                   // an eager server's starts that lie ahead
    int64_t buffer_flits = kUnbounded;
    int64_t credit_ps = 0;
    uint32_t memory = kNone;  // that packets end in
    nanobind::object service;

    void note_queue(int64_t at_ps, int64_t change) {
        if (at_ps > changed_ps) {
            add_queue_time(queue, at_ps - changed_ps);
            max_queue = std::max(max_queue, queue);
            changed_ps = at_ps;
        }
        queue += change;
    }

    // Packets that never start may wait longer than can be told.
    void add_queue_time(int64_t length, int64_t time_ps) {
        int64_t lasted;
        if (__builtin_mul_overflow(length, time_ps, &lasted) ||
            __builtin_add_overflow(queue_ps, lasted, &queue_ps)) {
            queue_ps = INT64_MAX;
        }
    }

    // Of an arbitrated server: who has come up to now, and waits. Since the last time the queue has
    // only grown, so that its greatest length is the last one that lasted.
    void count_arrivals(int64_t now_ps) {
        int64_t lasting = now_ps > changed_ps ? queue : 0;  // longer than an instant
        note_queue(now_ps, 0);
        each_occupied([&](uint32_t number) {
            Queue& found = queues[number];
            for (; found.num_counted < found.waiting.size(); ++found.num_counted) {
                const int64_t waited_ps = now_ps - found.waiting[found.num_counted].ready_ps;
                if (waited_ps < 0) break;
                add_queue_time(1, waited_ps);
                lasting += waited_ps > 0;
                ++queue;
            }
        });
        max_queue = std::max(max_queue, lasting);
    }

    void note_starts(int64_t now_ps) {
        for (; !starts.empty() && starts.front() <= now_ps; starts.pop_front()) {
            note_queue(starts.front(), -1);
        }
    }

    // An eager server starts a packet that is ready as soon as it is free.
    void book(int64_t ready_ps) {
        note_starts(ready_ps);
        note_queue(ready_ps, +1);
        starts.push_back(free_ps);
    }

    // Which of its channels has this number in routes, made at first use; places stay.
    uint32_t channel_place(uint32_t number) {
        const auto found = std::find(channels.begin(), channels.end(), number);
        const auto place = static_cast<uint32_t>(found - channels.begin());
        if (found == channels.end()) channels.push_back(number);
        return place;
    }

    bool is_bounded() const { return buffer_flits != kUnbounded; }

    // The number of the queue with this key, made at first use; numbers stay.
    uint32_t queue_number(int64_t key) {
        for (uint32_t number = 0; number < queues.size(); ++number) {
            if (queues[number].key == key) return number;
        }
        queues.push_back({key});
        first_queue = queues.data();
        has_many_queues = queues.size() > 64;
        return static_cast<uint32_t>(queues.size() - 1);
    }

    void note_pushed(uint32_t number) {
        if (number < 64) occupied |= uint64_t{1} << number;
        ++num_queued;
    }

    void note_popped(uint32_t number) {
        if (number < 64 && first_queue[number].waiting.empty()) occupied &= ~(uint64_t{1} << number);
        --num_queued;
    }

    // Of the queue granted last: turns go on behind it. Before any grant it is before all queues.
    int64_t last_key() const {
        return last_queue == kNone ? queue_key(kSource, 0) - 1 : first_queue[last_queue].key;
    }

    // While others wait it looks for a packet when the lone one is ready, whose event is under way.
    // While none does that goes without saying.
    void note_lone(int64_t ready_ps) { check_ps = booked_ps = ready_ps; }

    void forget_lone() {
        lone = kNone;
        if (num_queued > 0) check_ps = booked_ps = kNever;
    }

    // If no packet is in front of it; then it will not look for one either.
    bool is_idle() const { return (num_queued | ~lone) == 0; }

    // If only one queue has packets: that is known to be so.
    bool has_one_queue() const { return (occupied & (occupied - 1)) == 0 && !has_many_queues; }

    // Calls visit with the number of every queue that is not empty.
    template <typename Visit>
    void each_occupied(Visit visit) const {
        for (uint64_t left = occupied; left != 0; left &= left - 1) {
            visit(static_cast<uint32_t>(std::countr_zero(left)));
        }
        if (!has_many_queues) [[likely]] return;
        for (uint32_t number = 64; number < queues.size(); ++number) {
            if (!queues[number].waiting.empty()) visit(number);
        }
    }
};

}  // namespace tilewright
