// Events, servers, queues and credits: sections 1 to 3 of docs/engine.md.
#include "core.hpp"

namespace tilewright {

namespace {
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
    run(until_ps < 0 ? INT64_MAX : until_ps);
    if (wakes_.empty() && now_ps_ < until_ps) now_ps_ = until_ps;
    return std::exchange(wakes_, {});
}

[[gnu::flatten]] void Core::run(int64_t limit_ps) {
    while (!queue_.empty()) {
        const Event& next = queue_.top();
        if (next.time_ps != now_ps_) {
            if (!wakes_.empty() || next.time_ps > limit_ps) return;
            if (next.time_ps < now_ps_) [[unlikely]] {
                raise_fault(Fault::kTimeReversed, next.rank & kLowMask, next.id, next.time_ps);
            }
            now_ps_ = next.time_ps;
        } else if (!wakes_.empty() && next.rank >> kPhaseShift == kGrantPhase) {
            return;
        }
        ++events_;
        handle(queue_.take());
        if ((events_ & kInterruptMask) == 0 && PyErr_CheckSignals() != 0) {
            throw nanobind::python_error();
        }
    }
}

void Core::handle(const Event& event) {
    switch (event.rank >> kPhaseShift) {
        case kGrantPhase:
            if (event.slot != kNone) return pass(event);
            return grant(event.rank & kLowMask);
        case kCompletePhase:
            return complete(event.slot);
        default:
            break;
    }
    const uint32_t low = (event.rank ^ rank_salt_) & kLowMask;
    switch (low >> kWhatShift) {
        case kStartOne:
            return start(event.slot);
        case kStartRun:
            return start_next(event.slot);
        case kArrive:
            return enqueue(event.slot);
        default: {
            const uint32_t index = low & ((1u << kWhatShift) - 1);
            Server& server = servers_[index];
            server.credit(event.slot >> kChannelShift) += event.slot & ((1u << kChannelShift) - 1);
            return kick(server, index);
        }
    }
}

// An eager server takes a packet as soon as it is ready: the most frequent event of all.
void Core::pass(const Event& event) {
    const Packet& packet = packets_[event.slot];
    Server& server = servers_[event.rank & kLowMask];
    __builtin_prefetch(&hops_[packet.hop]);
    const int64_t start_ps =
        server.free_ps > event.time_ps ? server.book(event.time_ps) : event.time_ps;
    const int64_t hold_ps = packet.num_bytes ? packet.flits * server.flit_ps
                                             : definition_of(tasks_[packet.task]).amount;
    serve(server, event.slot, start_ps, hold_ps, server.latency_ps);
}

// The timing law: when the packet leaves, and what follows from that.
void Core::serve(Server& server, uint32_t slot, int64_t start_ps, int64_t hold_ps,
                 int64_t latency_ps) {
    Packet& packet = packets_[slot];
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
        trace_.emplace_back(hop.server, packet.id, packet.ready_ps, start_ps, tail_ps);
    }
    const int64_t arrival_ps = later(tail_ps, latency_ps, hop.server, packet.id);
    if (hop.returns_credit) [[unlikely]] return_credit(packet, tail_ps);
    if (hop.last) return deliver(slot, arrival_ps);
    if (server.bounded) [[unlikely]] server.credit(hop.channel) -= packet.flits;
    ++packet.hop;
    packet.tail_in_ps = arrival_ps;
    push_arrival(packet, slot, done_ps - (packet.flits - 1) * server.flit_ps + latency_ps);
}

void Core::push_arrival(Packet& packet, uint32_t slot, int64_t head_ps) {
    const Hop& hop = hops_[packet.hop];
    packet.ready_ps = hop.whole ? packet.tail_in_ps : head_ps;
    if (hop.eager) [[likely]] {
        queue_.push({packet.ready_ps, grant_rank(hop.server), slot, packet.id});
    } else {
        queue_.push({packet.ready_ps, arrive_rank(kArrive), slot, packet.id ^ salt_});
    }
}

void Core::return_credit(const Packet& packet, int64_t tail_ps) {
    const Hop& before = hops_[packet.hop - 1];
    const int64_t credit_ps = servers_[before.server].credit_ps;
    const int64_t at_ps = later(tail_ps, credit_ps, before.server, packet.id);
    const uint32_t slot = uint32_t{before.channel} << kChannelShift | packet.flits;
    queue_.push({at_ps, arrive_rank(kCredit, before.server), slot, packet.id ^ salt_});
}

void Core::deliver(uint32_t slot, int64_t at_ps) {
    const Packet& packet = packets_[slot];
    Task& task = tasks_[packet.task];
    Route& route = routes_[packet.route];
    ++route.packets_out;
    route.bytes_out += packet.num_bytes;
    task.end_ps = std::max(task.end_ps, at_ps);
    if (--task.packets_left == 0) {
        queue_.push({task.end_ps, kCompletePhase << kPhaseShift, packet.task, task.id});
    }
    packets_.remove(slot);
}

int32_t Core::source_of(const Packet& packet) const {
    if (hops_[packet.hop].first) return kSource;
    return static_cast<int32_t>(hops_[packet.hop - 1].server);
}

uint32_t Core::channel_of(const Packet& packet) const {
    return hops_[hops_[packet.hop].first ? packet.hop : packet.hop - 1].channel;
}

void Core::enqueue(uint32_t slot) {
    const Packet& packet = packets_[slot];
    const uint32_t index = hops_[packet.hop].server;
    Server& server = servers_[index];
    const int32_t source = server.round_robin ? source_of(packet) : 0;
    Queue& queue = server.queue_of(source, channel_of(packet));
    queue.waiting.push_sorted({packet.ready_ps, packet.id, slot});
    server.note_queue(now_ps_, +1);
    kick(server, index);
}

// Make sure that the server looks for a packet as soon as it is free.
void Core::kick(Server& server, uint32_t index) {
    if (server.grant_due || server.queue == 0) return;
    server.grant_due = true;
    queue_.push({std::max(now_ps_, server.free_ps), grant_rank(index), kNone, -1});
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
    const auto [hold_ps, latency_ps] = service_times(server, packets_[first.packet]);
    serve(server, first.packet, now_ps_, hold_ps, latency_ps);
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
    const Packet& packet = packets_[queue.waiting.front().packet];
    const Hop& hop = hops_[packet.hop];
    return hop.last || server.credit(hop.channel) >= packet.flits;
}

std::pair<int64_t, int64_t> Core::service_times(Server& server, const Packet& packet) {
    const Task& task = tasks_[packet.task];
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
