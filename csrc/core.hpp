// The native event core: docs/engine.md in C++, bit for bit what engine/reference computes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core_state.hpp"
#include "event_queue.hpp"
#include "graph.hpp"
#include "island.hpp"
#include "memory_server.hpp"
#include "server.hpp"
#include "slab.hpp"

namespace tilewright {

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
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;

    int64_t add_server(int64_t flit_ps, int64_t latency_ps, int64_t buffer_flits, int64_t credit_ps,
                       bool round_robin, bool whole, nanobind::object service);
    int64_t add_banked_memory(const nanobind::object& spec, int64_t capacity_bytes);
    int64_t add_simple_memory(const nanobind::object& spec, int64_t capacity_bytes);
    int64_t add_route(const std::vector<uint32_t>& servers, const std::vector<uint32_t>& channels);
    int64_t add_signal();
    void remove_signal(uint32_t signal);
    int64_t add_gate(int64_t packets);
    int64_t add_round_trip(uint32_t out, uint32_t back, int64_t gate, bool writes, bool is_home,
                           int64_t inside);
    GraphPtr compile(const nanobind::list& rows) const;
    void compile_into(Graph& graph, const nanobind::list& rows) const;
    // Checks a task whose afters are the last of the graph, numbers its packets and adds it.
    void append_task(Graph& graph, const Definition& task, int64_t target) const;
    Cut cut_of(int64_t segment_bytes, int64_t stride_bytes) const {
        return {segment_bytes, stride_bytes, (segment_bytes - 1) / packet_bytes_ + 1};
    }

    int64_t submit(const GraphPtr& graph, int64_t owner, const std::vector<int64_t>& after);
    int64_t submit_watched(const GraphPtr& graph, int64_t owner, const std::vector<int64_t>& after);
    int64_t perform(const GraphPtr& graph, int64_t owner);
    int64_t perform_rows(const nanobind::list& rows, int64_t owner);
    int64_t performed_task(int64_t owner);
    void end_owner(int64_t owner);
    bool was_submitted() const { return was_submitted_; }
    void raise_signal(uint32_t signal, int64_t amount);
    int64_t signal_value(uint32_t signal) const { return signals_[signal].value; }
    bool watch(int64_t task_id);
    bool is_complete(int64_t task_id) { return find_live(task_id) == kNone; }
    std::vector<int64_t> advance(int64_t until_ps);
    int64_t next_wake();
    // The most events, and the last instant, of all runs; more is a fault.
    void set_limits(int64_t max_events, int64_t last_ps);
    bool is_drained() { return queue_.top() == kNone && num_live_ == 0 && silent_ps_ <= now_ps_; }

    std::vector<std::tuple<int64_t, int64_t>> take_effects() { return std::exchange(effects_, {}); }
    void set_trace(bool on, int64_t first_owner, int64_t last_owner);
    std::vector<TraceRecord> take_trace() { return std::exchange(trace_, {}); }
    std::vector<TraceRecord> take_memory_trace();
    std::vector<std::vector<int64_t>> memory_counters(uint32_t server);
    std::vector<std::vector<int64_t>> memory_openings(uint32_t server);

    std::array<int64_t, 8> server_counters(uint32_t server);
    std::vector<int64_t> busy_ps();  // of all servers
    std::array<int64_t, 4> route_counters(uint32_t route);
    std::optional<Violation> first_violation();
    std::vector<WaitingTask> waiting_tasks();
    std::vector<WaitingPacket> waiting_packets();
    void tamper(uint32_t server, const std::string& counter, int64_t amount);

    // For Python's garbage collector: the objects that the core holds.
    std::vector<Server>& servers() { return servers_; }

    int64_t now_ps() const { return now_ps_; }
    int64_t events() const { return events_; }

  private:
    // tasks.cpp
    void check_address(int64_t row, const Definition& task, uint32_t target,
                       const Graph& graph) const;
    uint32_t check_target(int64_t row, Kind kind, int64_t target) const;
    void count_conditions(uint32_t task, const Graph& graph, uint32_t row,
                          const std::vector<uint32_t>& earlier);
    void follow(uint32_t task, uint32_t other);
    [[gnu::noinline]] void refuse_late(const Graph& graph, int64_t first_id) const;
    void start_delayed(StartRun run);
    void push_run(uint32_t run);
    // noinline: the loop stays small, which is worth a quarter of its speed
    [[gnu::noinline]] void start_next(uint32_t run);
    [[gnu::noinline]] void start(uint32_t task);
    // more_follows: at this instant, of what happens now
    void set_out(uint32_t packet, bool more_follows);
    void enter(Event& packet, uint32_t route);
    void start_exchange(uint32_t task, const Definition& definition);
    void send_next(uint32_t task, const Definition& definition, bool more_follows);
    [[gnu::noinline]] void turn(uint32_t packet);
    [[gnu::noinline]] void come_back(uint32_t packet);
    [[gnu::noinline]] void let_in(uint32_t gate);
    void call_gate(uint32_t gate, bool more_follows);
    [[gnu::noinline]] void complete(uint32_t task);
    void tell(const Graph& graph, const Extra& extra);
    void wake(int64_t who);
    void release(uint32_t task);
    void retire(uint32_t submission);
    void raise(uint32_t signal, int64_t amount);
    uint32_t find_live(int64_t task_id);
    uint32_t find_task(int64_t task_id);
    Part part_of(const Task& task, const Definition& definition, int64_t place) const;

    enum What : uint32_t { kStartOne = 0, kStartRun = 1 };
    void push_start(What what, uint32_t subject, int64_t at_ps, int64_t id);

    // network.cpp
    uint32_t buffer_behind(Server& server, uint32_t channel);
    void run_guarded(uint64_t limit_ps);
    [[gnu::noinline]] void run(uint64_t limit_ps);
    bool is_beyond(const Event& event) const;
    [[gnu::noinline]] void handle(uint32_t event);
    void pass(uint32_t packet);
    void dispatch(uint32_t event) { queue_[event].flits != 0 ? pass(event) : handle(event); }
    void count_event() {
        if (++events_ >= next_check_) [[unlikely]] check_events();
    }
    [[gnu::noinline]] void check_events();
    void push(const Event& event) { schedule(queue_.add(event)); }
    void schedule(uint32_t slot) { schedule(queue_[slot], slot); }
    bool is_asleep(uint32_t island) const {
        return num_asleep_ > 0 && island != kNone && islands_[island].is_asleep;
    }
    // Into the queue of its island, if that is asleep.
    [[gnu::always_inline]] void schedule(Event& event, uint32_t slot) {
        if (is_asleep(event.island)) [[unlikely]] return islands_[event.island].queue.push(slot);
        queue_.push(event, slot);
    }
    void push_complete(uint32_t task, int64_t at_ps);
    [[gnu::noinline]] void wait(Server& server, int64_t ready_ps);
    [[gnu::noinline]] void deliver(uint32_t packet, int64_t at_ps);
    void settle_clock(uint64_t limit_ps);

    // island.cpp
    uint32_t island_for(RoundTrip& trip);
    bool is_worthwhile(const RoundTrip& trip) const;
    bool is_slow(const Server& server) const;
    void settle_on(Island& island, uint32_t number, const RoundTrip& trip);
    [[gnu::noinline]] void touch(Island& island);
    int64_t catch_up(Island& island, const Event& limit);
    void touch_islands();
    [[gnu::noinline]] void awaken(Island& island);
    [[gnu::noinline]] void meet(uint32_t event);
    void plan_catch_up(Island& island, uint32_t number);
    void plan_for(uint32_t task, uint32_t island);
    void catch_up_at(Island& island, uint32_t number, Event due);
    int64_t least_end_ps(Island& island) const;
    int64_t least_end_ps(const Company& company) const;
    int64_t least_end_ps(uint32_t task, int64_t bytes_before) const;
    int64_t awaited_bytes(uint32_t task) const;
    void end_late(uint32_t packet);
    int64_t least_bytes(const Task& task, const Definition& definition, int64_t packets) const;
    bool is_quiet(const Island& island, size_t place) const;
    bool is_plain(const Task& task) const;
    bool end_together(const Task& task, const Task& other) const;
    void settle_served(const Island& island);
    bool has_visitors(const Island& island) const;
    bool is_visited(const Server& server) const;
    void share_gate(uint32_t island);
    uint32_t island_of(const Task& task) const;
    void touch_island_of(uint32_t task);
    void look_out_for(uint32_t task);
    void start_home(uint32_t task, uint32_t island);
    // The event that happens now: islands are touched up to it.
    void note_current(const Event& event) {
        if (catch_up_limit_ != nullptr) return;
        current_rank_ = event.rank;
        current_id_ = event.id;
    }
    // If grants of this instant are left for the next run.
    bool is_run_over() const {
        return catch_up_limit_ == nullptr && limit_ps_ <= static_cast<uint64_t>(now_ps_);
    }
    // If no other event happens before: of all, or of the island that catches up.
    bool is_next(const Event& event) {
        if (catch_up_limit_ == nullptr) {
            if (is_asleep(event.island)) return false;
            const uint32_t top = queue_.top();
            return top == kNone || event < queue_[top];
        }
        return event.island != kNone && event < *catch_up_limit_ &&
               !islands_[event.island].queue.has_before(event);
    }
    void deliver_home(uint32_t packet);
    void leave_gate(uint32_t task, const RoundTrip& trip);
    [[gnu::noinline]] void do_duty(uint32_t event);
    uint32_t last_server(uint32_t route) const {
        return hops_[routes_[route].first_hop + routes_[route].num_hops - 1].server;
    }

    // hop.hpp
    // Whether a server may have to choose; a link takes packets at its rate, and is no memory.
    enum class Choice { kNever, kOfLink, kPossible };
    template <Choice kChoice>
    void serve(Server& server, uint32_t packet, int64_t start_ps, int64_t hold_ps,
               int64_t latency_ps, int64_t ready_ps);
    void push_arrival(Event& packet, uint32_t slot, const Hop& hop, int64_t head_ps);
    bool may_leave(uint32_t flits, uint32_t buffer) {
        return buffer == kNone || buffers_[buffer].has_room(flits, now_ps_);
    }
    void enqueue(Event& packet, uint32_t slot, uint32_t index);
    static bool is_lone_at(const Server& server, const Event& packet) {
        return server.is_idle() & (packet.time_ps >= server.free_ps);
    }
    void await_lone(Server& server, uint32_t index, Event& packet, uint32_t slot);
    void check_at(Server& server, uint32_t index, int64_t at_ps, uint32_t packet);
    bool return_credit(uint32_t packet, const Hop& before, int64_t tail_ps);
    // A packet that has met nobody, bytes on a link: what most events are.
    void grant_on_link(Server& server, uint32_t index, uint32_t packet);
    [[gnu::noinline]] void note_trace(uint32_t server, const Event& packet, int64_t ready_ps,
                                      int64_t start_ps, int64_t tail_ps);
    void add_wait(Server& server, int64_t time_ps);
    int64_t later(int64_t from_ps, int64_t by_ps, int64_t server, int64_t id) const;

    // arbiter.cpp
    [[gnu::noinline]] void push_check(uint32_t index, int64_t at_ps);
    [[gnu::noinline]] void await_credit(Server& server, uint32_t index, int64_t at_ps,
                                        uint32_t packet);
    void look(Server& server, uint32_t index);
    [[gnu::noinline]] void end_stall(Server& server);
    [[gnu::noinline]] void grant(Server& server, uint32_t index);
    const Ring<Waiting>& line_up(Server& server, uint32_t packet);
    [[gnu::noinline]] void enqueue_behind(Server& server, uint32_t index, uint32_t packet);
    [[gnu::noinline]] void grant_lone(Server& server, uint32_t index, uint32_t packet);
    [[gnu::noinline]] void keep_waiting(Server& server, uint32_t index, uint32_t packet);
    [[gnu::noinline]] void admit(Server& server, uint32_t index);
    void take(Server& server, uint32_t index, uint32_t queue);
    [[gnu::noinline]] void plan_next(Server& server, uint32_t index);
    void note_turn(Server& server, uint32_t index, uint32_t queue, int64_t ready_ps, int64_t id);
    std::pair<int64_t, int64_t> service_times(Server& server, uint32_t packet);
    [[gnu::noinline]] std::pair<int64_t, int64_t> asked_times(Server& server, const Event& packet);
    [[gnu::noinline]] void check_next(Server& server, uint32_t index, bool has_granted);
    uint32_t choose(Server& server);
    [[gnu::noinline]] uint32_t choose_among(Server& server);
    static bool goes_before(const Server& server, const Queue& left, const Queue& right);
    bool may_start(Server& server, const Waiting& first);

    // memory_server.cpp
    int64_t add_memory(std::unique_ptr<MemoryServer> memory);
    AccessRequest access_of(const Event& packet) const;
    [[gnu::noinline]] bool has_room(const Server& server, const Event& packet) const;
    [[gnu::noinline]] void take_in(Server& server, uint32_t packet);
    void decide_at(Server& server, int64_t at_ps);
    [[gnu::noinline]] void decide(uint32_t server);
    void deliver_served(uint32_t server, const std::vector<Completion>& completions);
    [[gnu::noinline]] void await_room(Server& server);
    void settle_memories();

    int32_t source_of(uint32_t hop) const;
    uint32_t channel_of(uint32_t hop) const;
    bool is_traced(int64_t id) const {
        const int64_t owner = id >> kOwnerShift;
        return tracing_ && owner >= first_traced_owner_ && owner <= last_traced_owner_;
    }
    void check_outside() const;

    // report.cpp
    std::array<int64_t, 8> counters_at(Server& server, int64_t now_ps) const;
    std::optional<Violation> route_violation(std::vector<uint32_t>& used);
    std::optional<Violation> server_violation(uint32_t server);
    void forget_checks();
    void append_waiting(const Submission& submission, std::vector<WaitingTask>& rows,
                        std::unordered_map<int64_t, std::vector<int64_t>>& earlier) const;

    // ranks: the phase in the top two bits; below it a grant's server, or in phase 0 what happens,
    // mixed with the salt
    enum Phase : uint32_t {
        kArrivePhase = 0,
        kCompletePhase = 1,
        kGrantPhase = 2,
        kDecidePhase = 3
    };
    static constexpr uint32_t kPhaseShift = 30;
    static constexpr uint32_t kWhatShift = 28;
    static constexpr uint32_t kGateRank = 1;  // gates act after all completions
    static constexpr uint32_t kLowMask = (1u << kPhaseShift) - 1;
    static constexpr int64_t kCheckedEvents = 1 << 16;  // events between checks for Ctrl-C

    uint32_t arrive_rank(What what) const { return (what << kWhatShift) ^ rank_salt_; }
    static uint32_t grant_rank(uint32_t server) { return (kGrantPhase << kPhaseShift) | server; }

    int64_t flit_bytes_;
    int64_t packet_bytes_;
    int64_t salt_;
    uint32_t rank_salt_;
    int64_t now_ps_ = 0;
    uint64_t limit_ps_ = 0;  // of the run: wake-ups draw it near
    int64_t events_ = 0;
    int64_t next_check_ = kCheckedEvents;  // events at which Ctrl-C and the limit are checked
    int64_t max_events_ = INT64_MAX - 1;
    int64_t last_ps_ = INT64_MAX;  // of next_wake: events after it are a fault
    int64_t num_live_ = 0;
    int64_t silent_ps_ = 0;  // the last arrival, credit or delivery that has no event of its own
    bool running_ = false;
    bool has_failed_ = false;  // in the middle of an instant: it stays there
    bool tracing_ = false;
    int64_t first_traced_owner_ = 0;
    int64_t last_traced_owner_ = INT64_MAX;
    EventQueue queue_;
    std::vector<Server> servers_;
    std::vector<Hop> hops_;
    std::vector<PacketBuffer> buffers_;
    std::vector<Route> routes_;
    std::vector<Signal> signals_;
    std::vector<uint32_t> free_signals_;  // that were removed: the next ones take their numbers
    std::vector<Gate> gates_;
    std::vector<RoundTrip> trips_;
    std::vector<Island> islands_;
    uint32_t num_asleep_ = 0;  // of them: hops ask no further while it is 0
    uint32_t current_rank_ = 0;  // of the event that is handled now, but for those of islands
    int64_t current_id_ = 0;
    int64_t num_runs_ = 0;
    int64_t touched_run_ = -1;  // after which all islands were touched
    const Event* catch_up_limit_ = nullptr;  // while the events of an island happen
    BlockSlab<Task> tasks_;
    std::vector<Progress> progress_;  // by task: set when it starts
    Slab<Submission> submissions_;
    Slab<Follower> followers_;
    Slab<StartRun> runs_;
    std::vector<GraphPtr> spare_graphs_;  // that nobody uses, for perform_rows
    Owners owners_;
    std::vector<std::tuple<int64_t, int64_t>> effects_;
    std::vector<int64_t> wakes_;  // ids of watched tasks; of a performed one ~owner
    size_t num_taken_wakes_ = 0;
    bool was_submitted_ = false;  // what perform was given last
    std::vector<std::unique_ptr<MemoryServer>> memories_;
    // memories of one kind share their shape, so that it stays in the cache
    std::vector<std::shared_ptr<const MemoryShape>> shapes_;
    nanobind::dict shape_indices_;  // by their specs
    int64_t settled_ps_ = -1;  // when the memories have last caught up, and after how many events
    int64_t settled_events_ = -1;
    std::vector<int64_t> routed_bytes_;  // by server: over all routes, when the rules were checked
    std::vector<TraceRecord> trace_;
    std::vector<TraceRecord> memory_trace_;  // server, packet, decided, done, held up by refresh
};

[[noreturn]] void raise_fault(Fault kind, int64_t first = 0, int64_t second = 0, int64_t third = 0);

}  // namespace tilewright
