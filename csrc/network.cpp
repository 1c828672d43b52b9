// Events, servers, queues and credits: sections 1 to 3 of docs/engine.md.
#include "core.hpp"
#include "hop.hpp"

namespace tilewright {

namespace {
constexpr uint64_t kNoLimit = UINT64_MAX;
constexpr int64_t kNoWake = INT64_MAX;
}

int64_t Core::add_server(int64_t flit_ps, int64_t latency_ps, int64_t buffer_flits,
                         int64_t credit_ps, bool round_robin, bool whole,
                         nanobind::object service) {
    check_outside();
    Server server;
    server.flit_ps = flit_ps;
    server.latency_ps = latency_ps;
    server.buffer_flits = buffer_flits;
    server.credit_ps = credit_ps;
    server.round_robin = round_robin;
    server.whole = whole;
    server.eager = !round_robin && !server.is_bounded() && service.is_none();
    server.has_service = !service.is_none();
    server.is_link = !server.has_service;
    server.service = std::move(service);
    servers_.push_back(std::move(server));
    return static_cast<int64_t>(servers_.size()) - 1;
}

int64_t Core::add_route(const std::vector<uint32_t>& servers,
                        const std::vector<uint32_t>& channels) {
    check_outside();
    Route route{static_cast<uint32_t>(hops_.size()), static_cast<uint32_t>(servers.size())};
    for (size_t hop = 0; hop < servers.size(); ++hop) {
        Server& server = servers_[servers[hop]];
        const bool takes_packets = server.has_service || server.is_memory;
        if (server.flit_ps == 0 && !takes_packets && route.rateless == kNone) {
            route.rateless = servers[hop];
        }
        const bool has_credits = hop > 0 && servers_[servers[hop - 1]].is_bounded();
        const uint32_t flags = (hop == 0 ? Hop::kFirst : 0) |
                               (hop + 1 == servers.size() ? Hop::kLast : 0) |
                               (server.eager ? Hop::kEager : 0) |
                               (server.whole ? Hop::kWhole : 0) |
                               (has_credits ? Hop::kReturnsCredit : 0);
        const uint32_t channel = server.channel_place(channels[hop]);
        const bool needs_buffer = server.is_bounded() && hop + 1 < servers.size();
        hops_.push_back({servers[hop], flags | channel << Hop::kQueueBits,
                         needs_buffer ? buffer_behind(server, channel) : kNone});
        const auto place = static_cast<uint32_t>(hops_.size() - 1);
        const int32_t source = server.round_robin ? source_of(place) : 0;
        const int64_t key = queue_key(source, channel_of(place));
        if (server.eager) continue;
        const uint32_t number = server.queue_number(key);
        if (number >= kMaxQueues) raise_fault(Fault::kQueueLimit, servers[hop]);
        hops_[place].bits |= number;
    }
    route.memory = servers_[servers.back()].memory == kNone ? kNone : servers.back();
    routes_.push_back(route);
    return static_cast<int64_t>(routes_.size()) - 1;
}

// Of a channel; made at first use.
uint32_t Core::buffer_behind(Server& server, uint32_t channel) {
    if (server.buffers.size() <= channel) server.buffers.resize(channel + 1, kNone);
    if (server.buffers[channel] == kNone) {
        server.buffers[channel] = static_cast<uint32_t>(buffers_.size());
        buffers_.push_back({server.buffer_flits, server.credit_ps});
    }
    return server.buffers[channel];
}

// Wake-ups that are due, of this instant or, after running on, of a later one.
std::vector<int64_t> Core::advance(int64_t until_ps) {
    check_outside();
    if (num_taken_wakes_ == wakes_.size()) {
        run_guarded(until_ps < 0 ? kNoLimit : static_cast<uint64_t>(until_ps));
        if (wakes_.empty() && now_ps_ < until_ps) now_ps_ = until_ps;
    }
    std::vector<int64_t> due(wakes_.begin() + static_cast<ptrdiff_t>(num_taken_wakes_),
                             wakes_.end());
    for (int64_t& wake : due) {
        if (wake < 0) wake = performed_task(~wake);
    }
    num_taken_wakes_ = wakes_.size();
    return due;
}

// The first of them, kNoWake if nothing is left.
int64_t Core::next_wake() {
    check_outside();
    if (num_taken_wakes_ == wakes_.size()) {
        run_guarded(static_cast<uint64_t>(last_ps_));
        if (wakes_.empty() && queue_.top() != kNone) {
            now_ps_ = last_ps_;
            raise_fault(Fault::kClockLimit, last_ps_);
        }
        if (wakes_.empty()) return kNoWake;
    }
    return wakes_[num_taken_wakes_++];
}

void Core::set_limits(int64_t max_events, int64_t last_ps) {
    max_events_ = max_events;
    last_ps_ = last_ps;
    next_check_ = std::min(events_ + kCheckedEvents, max_events_ + 1);
}

// A Ctrl-C ends the run, and so does an event beyond the limit.
void Core::check_events() {
    if (events_ > max_events_) raise_fault(Fault::kEventLimit, max_events_, now_ps_);
    next_check_ = std::min(events_ + kCheckedEvents, max_events_ + 1);
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

void Core::run_guarded(uint64_t limit_ps) {
    struct Running {
        bool& flag;
        explicit Running(bool& f) : flag(f) { flag = true; }
        ~Running() { flag = false; }
    } running(running_);
    wakes_.clear();
    num_taken_wakes_ = 0;
    ++num_runs_;
    try {
        run(limit_ps);
    } catch (...) {
        has_failed_ = true;
        throw;
    }
}

// Flattened: the hop of a packet through an eager server is most of most runs.
[[gnu::flatten]] void Core::run(uint64_t limit_ps) {
    limit_ps_ = limit_ps;
    for (uint32_t slot; (slot = queue_.top()) != kNone;) {
        const Event& next = queue_[slot];
        if (static_cast<uint64_t>(next.time_ps) >= limit_ps_ && is_beyond(next)) return;
        if (next.time_ps < now_ps_) [[unlikely]] {
            raise_fault(Fault::kTimeReversed, next.rank & kLowMask, next.id, next.time_ps);
        }
        queue_.take_top();
        const bool is_packet = next.flits != 0;
        if (!is_packet && next.duty != kNoDuty) [[unlikely]] {
            do_duty(slot);
            continue;
        }
        now_ps_ = next.time_ps;
        current_rank_ = next.rank;
        current_id_ = next.id;
        if (is_asleep(next.island)) [[unlikely]] {
            meet(slot);
        } else if (is_packet) [[likely]] {
            pass(slot);
        } else {
            handle(slot);
        }
        count_event();
    }
    settle_clock(limit_ps);
}

// Arrivals behind others, credits that nobody waits for, and deliveries that end no task move the
// clock too, once all is quiet.
void Core::settle_clock(uint64_t limit_ps) {
    const uint64_t end_ps = std::min(static_cast<uint64_t>(silent_ps_), limit_ps);
    if (wakes_.empty()) now_ps_ = std::max(now_ps_, static_cast<int64_t>(end_ps));
}

// The grants of the limit's instant are left: work may still be submitted at it.
bool Core::is_beyond(const Event& event) const {
    return static_cast<uint64_t>(event.time_ps) > limit_ps_ ||
           event.rank >> kPhaseShift >= kGrantPhase;
}

// All but a packet that an eager server takes.
void Core::handle(uint32_t slot) {
    const Event& event = queue_[slot];
    const uint32_t phase = event.rank >> kPhaseShift;
    if (phase == kGrantPhase) {
        const uint32_t index = event.rank & kLowMask;
        queue_.remove(slot);
        return look(servers_[index], index);
    }
    if (phase == kDecidePhase) {
        queue_.remove(slot);
        return decide(event.rank & kLowMask);
    }
    if (event.exchanged) return turn(slot);
    if (event.returning) return come_back(slot);
    const uint32_t subject = event.subject;
    const bool is_gate = event.rank == ((kCompletePhase << kPhaseShift) | kGateRank);
    const bool is_run = event.rank == arrive_rank(kStartRun);
    queue_.remove(slot);
    if (phase == kCompletePhase) return is_gate ? let_in(subject) : complete(subject);
    if (is_run) return start_next(subject);
    start(subject);
}

// An eager server takes a packet as soon as it is ready.
void Core::pass(uint32_t slot) {
    const Event& packet = queue_[slot];
    Server& server = servers_[packet.rank & kLowMask];
    if (!server.eager) {
        if (server.lone == slot) [[likely]] {
            const bool is_plain = server.is_link && packet.num_bytes > 0;
            if (is_plain) [[likely]] return grant_on_link(server, packet.rank & kLowMask, slot);
            return grant_lone(server, packet.rank & kLowMask, slot);
        }
        server.booked_ps = kNever;
        return look(server, packet.rank & kLowMask);
    }
    const int64_t ready_ps = packet.time_ps;
    const int64_t start_ps = std::max(ready_ps, server.free_ps);
    if (start_ps > ready_ps) wait(server, ready_ps);
    const int64_t hold_ps = packet.num_bytes ? packet.flits * server.flit_ps
                                             : tasks_[packet.subject].definition->amount;
    serve<Choice::kNever>(server, slot, start_ps, hold_ps, server.latency_ps, ready_ps);
}

// A packet that an eager server cannot start at once.
void Core::wait(Server& server, int64_t ready_ps) {
    add_wait(server, server.free_ps - ready_ps);
    server.book(ready_ps);
}

void Core::note_trace(uint32_t server, const Event& packet, int64_t ready_ps, int64_t start_ps,
                      int64_t tail_ps) {
    if (is_traced(packet.id)) trace_.emplace_back(server, packet.id, ready_ps, start_ps, tail_ps);
}

void Core::deliver(uint32_t slot, int64_t at_ps) {
    Event& packet = queue_[slot];
    Route& route = routes_[packet.route];
    ++route.packets_out;
    route.bytes_out += packet.num_bytes;
    packet.flits = 0;  // what follows is no grant
    if (packet.exchanged || packet.returning) {
        packet.time_ps = at_ps;
        packet.rank = kCompletePhase << kPhaseShift;
        if (packet.island != kNone) return deliver_home(slot);
        return queue_.push(slot);
    }
    Task& task = tasks_[packet.subject];
    int64_t end_ps = at_ps;
    if (packet.num_bytes > 0) {  // of a transfer
        int64_t& last_ps = progress_[packet.subject].end_ps;
        end_ps = last_ps = std::max(last_ps, at_ps);
    }
    if (--task.packets_left > 0) {
        silent_ps_ = std::max(silent_ps_, at_ps);
        return queue_.remove(slot);
    }
    packet.time_ps = end_ps;
    packet.rank = kCompletePhase << kPhaseShift;
    packet.id = task.id;
    queue_.push(slot);
}

void Core::push_complete(uint32_t task, int64_t at_ps) {
    Event event{};
    event.time_ps = at_ps;
    event.rank = kCompletePhase << kPhaseShift;
    event.id = tasks_[task].id;
    event.subject = task;
    push(event);
}

int32_t Core::source_of(uint32_t hop) const {
    return hops_[hop].has(Hop::kFirst) ? kSource : static_cast<int32_t>(hops_[hop - 1].server);
}

uint32_t Core::channel_of(uint32_t hop) const {
    const Hop& behind = hops_[hops_[hop].has(Hop::kFirst) ? hop : hop - 1];
    return servers_[behind.server].channels[behind.channel()];
}

void Core::check_outside() const {
    if (running_) raise_fault(Fault::kReentered);
}

}  // namespace tilewright
