// The native event core: docs/engine.md in C++, bit for bit what engine/reference.py computes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "event_queue.hpp"
#include "graph.hpp"
#include "server.hpp"
#include "slab.hpp"

namespace tilewright {

struct Hop {  // eight bytes: most machines have more hops than cache
    uint32_t server;
    uint32_t queue : 17;    // in front of the server, if that has to choose
    uint32_t channel : 10;  // of the buffer behind the server
    uint32_t first : 1;
    uint32_t last : 1;
    uint32_t eager : 1;  // of the server, to leave it alone until the packet is there
    uint32_t whole : 1;
    uint32_t returns_credit : 1;  // the packet waits in a bounded buffer behind the server before
};
static_assert(sizeof(Hop) == 8);
constexpr uint32_t kMaxQueues = 1u << 17;  // of one server

struct Route {
    uint32_t first_hop;
    uint32_t num_hops;
    uint32_t rateless = kNone;  // the first server that can carry no packets
    int64_t packets_in = 0;
    int64_t bytes_in = 0;
    int64_t packets_out = 0;
    int64_t bytes_out = 0;
};

struct Task {
    int64_t id;
    int64_t end_ps = 0;
    int64_t packets_left = 0;
    uint32_t submission;
    uint32_t row;
    uint32_t pending = 0;         // conditions that have not happened yet
    uint32_t followers = kNone;   // a chain of tasks of later submissions
    bool watched = false;
};

struct Owner;

struct Submission {
    GraphPtr graph;
    Owner* owner;
    int64_t first_id;
    uint32_t num_live;
    std::vector<uint32_t> tasks;  // kNone once complete
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

struct Owner {
    int64_t next_sequence = 0;
    size_t num_finished = 0;            // of those in submissions
    std::vector<uint32_t> submissions;  // in the order of first ids; finished ones at times
};

using TraceRecord = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>;
using Violation = std::tuple<std::string, int64_t, int64_t, int64_t>;
using WaitingTask = std::tuple<int64_t, int64_t, std::vector<int64_t>,
                               std::vector<std::tuple<int64_t, int64_t, int64_t>>,
                               std::vector<int64_t>>;
using WaitingPacket =
    std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool>;

class Core {
  public:
    Core(int64_t flit_bytes, int64_t packet_flits, int64_t arrival_salt);

    int64_t add_server(int64_t flit_ps, int64_t latency_ps, int64_t buffer_flits, int64_t credit_ps,
                       bool round_robin, bool whole, nanobind::object service);
    int64_t add_route(const std::vector<uint32_t>& servers, const std::vector<uint32_t>& channels);
    int64_t add_signal();
    GraphPtr compile(const nanobind::list& rows) const;

    int64_t submit(const GraphPtr& graph, int64_t owner, const std::vector<int64_t>& after);
    int64_t submit_watched(const GraphPtr& graph, int64_t owner, const std::vector<int64_t>& after);
    void raise_signal(uint32_t signal, int64_t amount);
    int64_t signal_value(uint32_t signal) const { return signals_[signal].value; }
    bool watch(int64_t task_id);
    std::vector<int64_t> advance(int64_t until_ps);
    bool is_drained() { return queue_.top() == kNone && num_live_ == 0 && silent_ps_ <= now_ps_; }

    std::vector<std::tuple<int64_t, int64_t>> take_effects() { return std::exchange(effects_, {}); }
    void set_trace(bool on);
    std::vector<TraceRecord> take_trace() { return std::exchange(trace_, {}); }

    std::array<int64_t, 8> server_counters(uint32_t server);
    std::array<int64_t, 4> route_counters(uint32_t route) const;
    std::optional<Violation> first_violation();
    std::vector<WaitingTask> waiting_tasks() const;
    std::vector<WaitingPacket> waiting_packets() const;
    void tamper(uint32_t server, const std::string& counter, int64_t amount);

    // For Python's garbage collector: the objects that the core holds.
    std::vector<Server>& servers() { return servers_; }

    int64_t now_ps() const { return now_ps_; }
    int64_t events() const { return events_; }

  private:
    // tasks.cpp
    void append_task(Graph& graph, Definition task, int64_t target) const;
    uint32_t check_route(int64_t row, Kind kind, int64_t target) const;
    void count_conditions(uint32_t task, const Definition& definition, const Graph& graph,
                          const std::vector<uint32_t>& earlier);
    void start_delayed(StartRun run);
    void push_run(uint32_t run);
    void start_next(uint32_t run);
    void start(uint32_t task);
    void inject(Event& packet);
    void complete(uint32_t task);
    void release(uint32_t task);
    void retire(uint32_t submission);
    void raise(uint32_t signal, int64_t amount);
    uint32_t find_live(int64_t task_id);
    const Definition& definition_of(const Task& task) const;

    enum What : uint32_t { kStartOne = 0, kStartRun = 1 };
    void push_start(What what, uint32_t subject, int64_t at_ps, int64_t id);

    // network.cpp
    void run(uint64_t limit_ps);
    bool is_beyond(const Event& event, uint64_t limit_ps) const;
    void handle(uint32_t event);
    void pass(uint32_t packet);
    void push(const Event& event) { queue_.push(queue_.add(event)); }
    void push_complete(uint32_t task, int64_t at_ps);
    void serve(Server& server, uint32_t packet, int64_t start_ps, int64_t hold_ps,
               int64_t latency_ps, int64_t ready_ps);
    void push_arrival(uint32_t packet, int64_t head_ps);
    void return_credit(uint32_t packet, int64_t tail_ps);
    void deliver(uint32_t packet, int64_t at_ps);
    void enqueue(uint32_t packet);
    void check_at(Server& server, uint32_t index, int64_t at_ps);
    void check_next(Server& server, uint32_t index, bool has_granted);
    void grant(uint32_t server);
    void settle_clock(uint64_t limit_ps);
    uint32_t choose(Server& server);
    static bool goes_before(const Server& server, const Queue& left, const Queue& right);
    bool may_start(Server& server, const Queue& queue);
    std::pair<int64_t, int64_t> service_times(Server& server, const Event& packet);

    int32_t source_of(uint32_t hop) const;
    uint32_t channel_of(uint32_t hop) const;
    void add_wait(Server& server, int64_t time_ps);
    int64_t later(int64_t from_ps, int64_t by_ps, int64_t server, int64_t id) const;
    void check_outside() const;

    // report.cpp
    std::array<int64_t, 8> counters_at(Server& server, int64_t now_ps) const;
    std::optional<Violation> server_violation(uint32_t server, int64_t routed_bytes);
    void append_waiting(const Submission& submission, std::vector<WaitingTask>& rows,
                        std::unordered_map<int64_t, std::vector<int64_t>>& earlier) const;

    // ranks: the phase in the top two bits; below it a grant's server, or in phase 0 what happens,
    // mixed with the salt
    enum Phase : uint32_t { kArrivePhase = 0, kCompletePhase = 1, kGrantPhase = 2 };
    static constexpr uint32_t kPhaseShift = 30;
    static constexpr uint32_t kWhatShift = 28;
    static constexpr uint32_t kLowMask = (1u << kPhaseShift) - 1;

    uint32_t arrive_rank(What what) const { return (what << kWhatShift) ^ rank_salt_; }
    static uint32_t grant_rank(uint32_t server) { return (kGrantPhase << kPhaseShift) | server; }

    int64_t flit_bytes_;
    int64_t packet_bytes_;
    int64_t salt_;
    uint32_t rank_salt_;
    int64_t now_ps_ = 0;
    int64_t events_ = 0;
    int64_t num_live_ = 0;
    int64_t silent_ps_ = 0;  // the last arrival or credit that has no event of its own
    bool running_ = false;
    bool tracing_ = false;
    EventQueue queue_;
    std::vector<Server> servers_;
    std::vector<Hop> hops_;
    std::vector<Route> routes_;
    std::vector<Signal> signals_;
    Slab<Task> tasks_;
    Slab<Submission> submissions_;
    Slab<Follower> followers_;
    Slab<StartRun> runs_;
    std::unordered_map<int64_t, Owner> owners_;  // its elements stay where they are
    std::vector<std::tuple<int64_t, int64_t>> effects_;
    std::vector<int64_t> wakes_;
    std::vector<TraceRecord> trace_;
};

[[noreturn]] void raise_fault(Fault kind, int64_t first = 0, int64_t second = 0, int64_t third = 0);

}  // namespace tilewright
