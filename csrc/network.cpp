// Events, servers, queues and credits: sections 1 to 3 of docs/engine.md.
#include "core.hpp"

namespace tilewright {

namespace {
constexpr uint64_t kNoLimit = UINT64_MAX;
constexpr int64_t kInterruptMask = (1 << 16) - 1;  // look for Ctrl-C every so many events
}

int64_t Core::add_server(int64_t flit_ps, int64_t latency_ps, int64_t buffer_flits,
                         int64_t credit_ps, bool round_robin, bool whole,
                         nanobind::object service) {
    check_outside();
    Server server;
    server.flit_ps = flit_ps;
    server.latency_ps = latency_ps;
    server.buffer_flits = buffer_flits;
    server.bounded = buffer_flits != kUnbounded;
    server.credit_ps = credit_ps;
    server.round_robin = round_robin;
    server.whole = whole;
    server.eager = !round_robin && !server.bounded && service.is_none();
    server.service = std::move(service);
    servers_.push_back(std::move(server));
    return static_cast<int64_t>(servers_.size()) - 1;
}

int64_t Core::add_route(const std::vector<uint32_t>& servers,
                        const std::vector<uint32_t>& channels) {
    check_outside();
    Route route{static_cast<uint32_t>(hops_.size()), static_cast<uint32_t>(servers.size())};
    for (size_t hop = 0; hop < servers.size(); ++hop) {
        const Server& server = servers_[servers[hop]];
        const bool is_rateless = server.flit_ps == 0 && server.service.is_none();
        if (is_rateless && route.rateless == kNone) route.rateless = servers[hop];
        hops_.push_back({
            .server = servers[hop],
            .channel = static_cast<uint16_t>(channels[hop]),
            .first = hop == 0,
            .last = hop + 1 == servers.size(),
            .eager = server.eager,
            .whole = server.whole,
            .returns_credit = hop > 0 && servers_[servers[hop - 1]].bounded,
        });
    }
    routes_.push_back(route);
    return static_cast<int64_t>(routes_.size()) - 1;
}

std::vector<int64_t> Core::advance(int64_t until_ps) {
    check_outside();
    struct Running {
        bool& flag;
        explicit Running(bool& f) : flag(f) { flag = true; }
        ~Running() { flag = false; }
    } running(running_);
    run(until_ps < 0 ? kNoLimit : static_cast<uint64_t>(until_ps));
    if (wakes_.empty() && now_ps_ < until_ps) now_ps_ = until_ps;
    return std::exchange(wakes_, {});
}

// Flattened: the hop of a packet through an eager server is most of most runs.
[[gnu::flatten]] void Core::run(uint64_t limit_ps) {
    for (uint32_t slot; (slot = queue_.top()) != kNone;) {
        const Event& next = queue_[slot];
        if (static_cast<uint64_t>(next.time_ps) >= limit_ps && is_beyond(next, limit_ps)) return;
        if (next.time_ps != now_ps_) {
            if (!wakes_.empty()) return;
            if (next.time_ps < now_ps_) [[unlikely]] {
                raise_fault(Fault::kTimeReversed, next.rank & kLowMask, next.id, next.time_ps);
            }
            now_ps_ = next.time_ps;
        } else if (!wakes_.empty() && next.rank >> kPhaseShift == kGrantPhase) {
            return;
        }
        queue_.take_top();
        handle(slot);
        if ((++events_ & kInterruptMask) == 0 && PyErr_CheckSignals() != 0) {
            throw nanobind::python_error();
        }
    }
}

// The grants of the limit's instant are left: work may still be submitted at it.
bool Core::is_beyond(const Event& event, uint64_t limit_ps) const {
    return static_cast<uint64_t>(event.time_ps) > limit_ps ||
           event.rank >> kPhaseShift == kGrantPhase;
}

void Core::handle(uint32_t slot) {
    const Event& event = queue_[slot];
    const uint32_t phase = event.rank >> kPhaseShift;
    if (phase == kGrantPhase) [[likely]] {
        if (event.flits != 0) [[likely]] return pass(slot);
        queue_.remove(slot);
        return grant(event.rank & kLowMask);
    }
    if (phase == kArrivePhase) return handle_arrival(slot);
    queue_.remove(slot);
    complete(event.subject);
}

void Core::handle_arrival(uint32_t slot) {
    const Event event = queue_[slot];
    const auto what = static_cast<What>(((event.rank ^ rank_salt_) & kLowMask) >> kWhatShift);
    if (what == kArrive) return enqueue(slot);
    queue_.remove(slot);
    if (what == kStartOne) return start(event.subject);
    if (what == kStartRun) return start_next(event.subject);
    Server& server = servers_[event.subject];
    server.credit(event.hop) += event.flits;
    kick(server, event.subject);
}

// An eager server takes a packet as soon as it is ready.
void Core::pass(uint32_t slot) {
    const Event& packet = queue_[slot];
    Server& server = servers_[packet.rank & kLowMask];
    const int64_t ready_ps = packet.time_ps;
    const int64_t start_ps = server.free_ps > ready_ps ? server.book(ready_ps) : ready_ps;
    const int64_t hold_ps = packet.num_bytes ? packet.flits * server.flit_ps
                                             : definition_of(tasks_[packet.subject]).amount;
    serve(server, slot, start_ps, hold_ps, server.latency_ps, ready_ps);
}

// The timing law: when the packet leaves, and what follows from that.
void Core::serve(Server& server, uint32_t slot, int64_t start_ps, int64_t hold_ps,
                 int64_t latency_ps, int64_t ready_ps) {
    Event& packet = queue_[slot];
    const Hop& hop = hops_[packet.hop];
    const int64_t done_ps = later(start_ps, hold_ps, hop.server, packet.id);
    const int64_t wire_ps = later(packet.tail_in_ps, server.flit_ps, hop.server, packet.id);
    const int64_t tail_ps = std::max(done_ps, wire_ps);
    server.stretch_ps += tail_ps - done_ps;
    server.free_ps = tail_ps;
    server.busy_ps += hold_ps;
    server.num_bytes += packet.num_bytes;
    ++server.packets;
    if (tracing_) [[unlikely]] {
        trace_.emplace_back(hop.server, packet.id, ready_ps, start_ps, tail_ps);
    }
    const int64_t arrival_ps = later(tail_ps, latency_ps, hop.server, packet.id);
    if (hop.last) {
        if (hop.returns_credit) return_credit(slot, tail_ps);
        return deliver(slot, arrival_ps);
    }
    packet.tail_in_ps = arrival_ps;
    const int64_t head_ps = done_ps - (packet.flits - 1) * server.flit_ps + latency_ps;
    if (server.bounded) [[unlikely]] server.credit(hop.channel) -= packet.flits;
    if (hop.returns_credit) [[unlikely]] return_credit(slot, tail_ps);
    push_arrival(slot, head_ps);
}

void Core::push_arrival(uint32_t slot, int64_t head_ps) {
    Event& packet = queue_[slot];
    const Hop& hop = hops_[++packet.hop];
    packet.time_ps = hop.whole ? packet.tail_in_ps : head_ps;
    packet.rank = hop.eager ? grant_rank(hop.server) : arrive_rank(kArrive);
    packet.order = hop.eager ? packet.id : packet.id ^ salt_;
    queue_.push(slot);
}

void Core::return_credit(uint32_t slot, int64_t tail_ps) {
    const Event& packet = queue_[slot];
    const Hop& before = hops_[packet.hop - 1];
    Event credit{};
    credit.time_ps = later(tail_ps, servers_[before.server].credit_ps, before.server, packet.id);
    credit.rank = arrive_rank(kCredit);
    credit.order = packet.id ^ salt_;
    credit.subject = before.server;
    credit.hop = before.channel;
    credit.flits = packet.flits;
    push(credit);
}

void Core::deliver(uint32_t slot, int64_t at_ps) {
    const Event& packet = queue_[slot];
    Task& task = tasks_[packet.subject];
    Route& route = routes_[packet.route];
    ++route.packets_out;
    route.bytes_out += packet.num_bytes;
    task.end_ps = std::max(task.end_ps, at_ps);
    queue_.remove(slot);
    if (--task.packets_left == 0) push_complete(packet.subject, task.end_ps);
}

void Core::push_complete(uint32_t task, int64_t at_ps) {
    Event event{};
    event.time_ps = at_ps;
    event.rank = kCompletePhase << kPhaseShift;
    event.order = tasks_[task].id;
    event.subject = task;
    push(event);
}

int32_t Core::source_of(const Event& packet) const {
    if (hops_[packet.hop].first) return kSource;
    return static_cast<int32_t>(hops_[packet.hop - 1].server);
}

uint32_t Core::channel_of(const Event& packet) const {
    return hops_[hops_[packet.hop].first ? packet.hop : packet.hop - 1].channel;
}

void Core::enqueue(uint32_t slot) {
    const Event& packet = queue_[slot];
    const uint32_t index = hops_[packet.hop].server;
    Server& server = servers_[index];
    const int32_t source = server.round_robin ? source_of(packet) : 0;
    Queue& queue = server.queue_of(source, channel_of(packet));
    queue.waiting.push_sorted({packet.time_ps, packet.id, slot});
    server.note_queue(now_ps_, +1);
    kick(server, index);
}

// Make sure that the server looks for a packet as soon as it is free.
void Core::kick(Server& server, uint32_t index) {
    if (server.grant_due || server.queue == 0) return;
    server.grant_due = true;
    Event event{};
    event.time_ps = std::max(now_ps_, server.free_ps);
    event.rank = grant_rank(index);
    event.order = -1;
    push(event);
}

void Core::grant(uint32_t index) {
    Server& server = servers_[index];
    server.grant_due = false;
    Queue* queue = choose(server);
    if (queue == nullptr) return;
    const Waiting first = queue->waiting.front();
    queue->waiting.pop_front();
    if (first < queue->last) raise_fault(Fault::kOrder, index, first.id, now_ps_);
    queue->last = first;
    server.last_source = queue->source;
    server.last_channel = queue->channel;
    server.note_queue(now_ps_, -1);
    server.wait_ps += now_ps_ - first.ready_ps;
    const auto [hold_ps, latency_ps] = service_times(server, queue_[first.packet]);
    serve(server, first.packet, now_ps_, hold_ps, latency_ps, first.ready_ps);
    kick(server, index);
}

Queue* Core::choose(Server& server) {
    Queue* best = nullptr;   // FIFO: the oldest; round robin: the first of all
    Queue* after = nullptr;  // round robin: the first after the last one granted
    for (Queue& queue : server.queues) {
        if (!may_start(server, queue)) continue;
        if (!server.round_robin) {
            if (!best || queue.waiting.front() < best->waiting.front()) best = &queue;
            continue;
        }
        if (!best) best = &queue;
        const bool later_slot = queue.source != server.last_source
                                    ? queue.source > server.last_source
                                    : queue.channel > server.last_channel;
        if (!after && later_slot) after = &queue;
    }
    return after ? after : best;
}

bool Core::may_start(Server& server, const Queue& queue) {
    if (queue.waiting.empty()) return false;
    if (!server.bounded) return true;
    const Event& packet = queue_[queue.waiting.front().packet];
    const Hop& hop = hops_[packet.hop];
    return hop.last || server.credit(hop.channel) >= packet.flits;
}

std::pair<int64_t, int64_t> Core::service_times(Server& server, const Event& packet) {
    const Task& task = tasks_[packet.subject];
    if (packet.num_bytes == 0) return {definition_of(task).amount, server.latency_ps};
    if (server.service.is_none()) return {packet.flits * server.flit_ps, server.latency_ps};
    const nanobind::object times =
        server.service(packet.id, task.id, packet.id - task.id, packet.flits, packet.num_bytes,
                       definition_of(task).tag, now_ps_);
    return {nanobind::cast<int64_t>(times[0]), nanobind::cast<int64_t>(times[1])};
}

int64_t Core::later(int64_t from_ps, int64_t by_ps, int64_t server, int64_t id) const {
    int64_t at_ps;
    if (__builtin_add_overflow(from_ps, by_ps, &at_ps)) {
        raise_fault(Fault::kTimeLimit, server, id, now_ps_);
    }
    return at_ps;
}

void Core::check_outside() const {
    if (running_) raise_fault(Fault::kReentered);
}

}  // namespace tilewright
