// The plain data of the native core: hops, routes, round trips, gates, tasks, submissions, signals.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "graph.hpp"
#include "owners.hpp"
#include "ring.hpp"
#include "server.hpp"
#include "slab.hpp"

namespace tilewright {

// Short, since most machines have more hops than cache.
struct Hop {
    enum Flag : uint32_t {
        kFirst = 1u << 27,
        kLast = 1u << 28,
        kEager = 1u << 29,  // of the server, to leave it alone until the packet is there
        kWhole = 1u << 30,
        kReturnsCredit = 1u << 31  // it waits in a bounded buffer behind the server before
    };
    static constexpr int kQueueBits = 17, kChannelBits = 10;

    uint32_t server;
    uint32_t bits;
    uint32_t buffer = kNone;  // behind the server, if it is bounded and this is not the last hop

    bool has(Flag flag) const { return (bits & flag) != 0; }
    bool is_last() const { return has(kLast); }
    // In front of the server, if that has to choose.
    uint32_t queue() const { return bits & ((1u << kQueueBits) - 1); }
    // Behind the server: which of those that it knows.
    uint32_t channel() const { return bits >> kQueueBits & ((1u << kChannelBits) - 1); }
};
static_assert(sizeof(Hop) == 12);
constexpr uint32_t kMaxQueues = 1u << Hop::kQueueBits;  // of one server

constexpr int kOwnerShift = 40;  // an id is owner * 2^40 + sequence

struct Route {
    uint32_t first_hop;
    uint32_t num_hops;
    uint32_t rateless = kNone;  // the first server that can carry no packets
    uint32_t memory = kNone;    // the last server, if it is one
    int64_t packets_in = 0;
    int64_t bytes_in = 0;
    int64_t packets_out = 0;
    int64_t bytes_out = 0;
    int64_t checked_packets = 0;  // when the rules were checked last
    int64_t checked_bytes = 0;
};

// Where the packets of an exchange go, and what each of them carries back.
struct RoundTrip {
    uint32_t out;   // routes
    uint32_t back;
    uint32_t gate;  // kNone: all packets set out at once
    bool writes;    // data go there and an answer of one flit comes back; else the reverse
    uint32_t inside = kNone;  // the route that what is read crosses there before it sets out
    uint32_t island = kNone;  // that it does not leave
    int64_t back_ps = 0;      // the least time that an answer takes
};

// Lets so many packets of exchanges be under way at once.
struct Gate {
    int64_t most;  // that it lets be under way
    int64_t room;
    bool is_due = false;      // to let in what there is room for
    uint32_t num_tasks = 0;   // under way
    uint32_t island = kNone;
    Ring<Waiting> waiting{};  // tasks with packets left to send, in the order of (start, id)
};

// Half a cache line, since thousands of tasks wait at once; those of a submission lie in its order.
struct alignas(32) Task {
    int64_t id;
    const Definition* definition;  // nullptr once it is complete
    uint32_t submission : 30;
    uint32_t watched : 1 = 0;
    uint32_t performed : 1 = 0;  // its owner's program waits for it
    uint32_t pending = 0;        // conditions that have not happened yet
    uint32_t packets_left = 0;
    uint32_t followers = kNone;  // a chain of tasks of later submissions

    bool is_live() const { return definition != nullptr; }
};
static_assert(sizeof(Task) == 32);

// How far a transfer or an exchange is.
struct Progress {
    int64_t end_ps = 0;
    uint32_t packets_sent = 0;  // of an exchange
    uint32_t packets_served = 0;
    uint32_t packets_unserved = 0;  // of an exchange on an island: not decided when
    uint32_t packets_awaited = 0;   // and answers that the last server has not taken
    int64_t last_served_id = -1;    // the packet that is served at end_ps
    int64_t started_ps = 0;
};

struct Part {  // what a packet of a transfer or an exchange carries
    int64_t offset;  // of its address from the tag
    int64_t num_bytes;
};

struct Submission {
    GraphPtr graph;
    Owner* owner = nullptr;
    int64_t first_id = 0;
    uint32_t num_live = 0;
    uint32_t first_task = kNone;  // of as many as the graph has definitions

    uint32_t num_tasks() const { return static_cast<uint32_t>(graph->definitions.size()); }
    uint32_t last_task() const { return first_task + num_tasks() - 1; }
};

struct Follower {
    uint32_t task;
    uint32_t next;
};

struct StartRun {  // delayed tasks of one submission, in the order of their starts
    int64_t base_ps;
    size_t next = 0;
    std::vector<uint32_t> tasks;
};

struct SignalWaiter {
    int64_t threshold;
    int64_t id;
    uint32_t task;

    bool operator>(const SignalWaiter& other) const {
        return threshold != other.threshold ? threshold > other.threshold : id > other.id;
    }
};

struct Signal {
    int64_t value = 0;
    std::priority_queue<SignalWaiter, std::vector<SignalWaiter>, std::greater<>> waiters;
};

}  // namespace tilewright
