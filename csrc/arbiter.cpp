// Servers that have to choose: queues in front of them, and which packet starts. Section 2 of
// docs/engine.md.
//
// A server looks for a packet when one may be able to start. The event of such a look is that of the
// packet itself, if it cannot start before that time: so a packet that meets no other needs no
// further event. At most one packet in front of a server has its event under way (booked_ps).
#include "core.hpp"

namespace tilewright {

// The packet will be ready in front of the server at its time, which may lie ahead.
void Core::enqueue(uint32_t slot) {
    const Event& packet = queue_[slot];
    const Hop hop = hops_[packet.hop];
    const int64_t ready_ps = packet.time_ps;
    Server& server = servers_[hop.server];
    auto& waiting = server.queues[hop.queue].waiting;
    waiting.push_sorted({ready_ps, packet.id, slot, packet.flits, hop.channel, hop.last});
    if (hop.queue < 64) server.occupied |= uint64_t{1} << hop.queue;
    ++server.num_queued;
    if (waiting.front().packet == slot) {
        check_at(server, hop.server, std::max(ready_ps, server.free_ps), slot);
    } else {
        silent_ps_ = std::max(silent_ps_, ready_ps);
    }
}

// Let the server look for a packet at this time, unless it looks earlier anyhow. The packet, if
// any, is first in its queue and cannot start before.
void Core::check_at(Server& server, uint32_t index, int64_t at_ps, uint32_t slot) {
    if (server.check_ps != kNever && at_ps >= server.check_ps) return;
    server.check_ps = at_ps;
    if (server.booked_ps == at_ps) return;
    if (slot == kNone || server.booked_ps != kNever) return push_check(index, at_ps);
    server.booked_ps = at_ps;
    Event& packet = queue_[slot];
    packet.time_ps = at_ps;
    packet.rank = grant_rank(index);
    queue_.push(slot);
}

void Core::push_check(uint32_t index, int64_t at_ps) {
    Event event{};
    event.time_ps = at_ps;
    event.rank = grant_rank(index);
    event.id = -1;
    push(event);
}

// The time of a look: unless it has looked earlier and planned anew, or a packet's event is to come.
void Core::meet(Server& server, uint32_t index) {
    if (server.check_ps == now_ps_ && server.booked_ps != now_ps_) grant(server, index);
}

void Core::grant(Server& server, uint32_t index) {
    server.check_ps = kNever;
    server.is_stalled = false;
    bool has_granted = false;
    do {
        const uint32_t number = choose(server);
        has_granted = number != kNone;
        if (has_granted) take(server, index, number);
    } while (has_granted && server.is_memory && server.num_queued > 0);  // which takes no time
    if (server.num_queued > 0) check_next(server, index, has_granted);
}

// The first packet of a queue starts.
void Core::take(Server& server, uint32_t index, uint32_t number) {
    Queue& queue = server.queues[number];
    const Waiting first = queue.waiting.front();
    if (std::tie(first.ready_ps, first.id) < std::tie(queue.last_ready_ps, queue.last_id))
        [[unlikely]] {
        raise_fault(Fault::kOrder, index, first.id, now_ps_);
    }
    queue.last_ready_ps = first.ready_ps;
    queue.last_id = first.id;
    server.last_key = queue.key;
    if (first.ready_ps < now_ps_ || queue.num_counted > 0) {
        add_wait(server, now_ps_ - first.ready_ps);
        server.count_arrivals(now_ps_);
        --queue.num_counted;
        --server.queue;
    }
    queue.waiting.pop_front();
    if (queue.waiting.empty() && number < 64) server.occupied &= ~(uint64_t{1} << number);
    --server.num_queued;
    const auto [hold_ps, latency_ps] = service_times(server, queue_[first.packet]);
    serve<Choice::kPossible>(server, first.packet, now_ps_, hold_ps, latency_ps, first.ready_ps);
}

// The first time at which a packet may start that cannot now. One that lacks credits with none on
// their way waits for return_credit.
void Core::check_next(Server& server, uint32_t index, bool has_granted) {
    int64_t next_ps = kNever;
    uint32_t packet = kNone;
    server.each_occupied([&](uint32_t number) {
        const Waiting& first = server.queues[number].waiting.front();
        int64_t at_ps = std::max(first.ready_ps, server.free_ps);
        uint32_t slot = first.packet;
        if (at_ps <= now_ps_ && server.is_memory) {
            if (!has_room(server, queue_[first.packet])) return await_room(server);
        } else if (at_ps <= now_ps_ && !has_granted) {
            const auto& returning = server.channels[first.channel].returning;
            server.is_stalled = true;
            if (returning.empty()) return;
            at_ps = returning.front().at_ps;
            slot = kNone;
        }
        if (next_ps != kNever && at_ps >= next_ps) return;
        next_ps = at_ps;
        packet = slot;
    });
    if (next_ps != kNever) check_at(server, index, std::max(next_ps, now_ps_), packet);
}

// The queue whose first packet starts now.
uint32_t Core::choose(Server& server) {
    uint32_t best = kNone;
    server.each_occupied([&](uint32_t number) {
        const Waiting& first = server.queues[number].waiting.front();
        if (first.ready_ps > now_ps_ || !may_start(server, first)) return;
        if (best == kNone || goes_before(server, server.queues[number], server.queues[best])) {
            best = number;
        }
    });
    return best;
}

bool Core::goes_before(const Server& server, const Queue& left, const Queue& right) {
    if (!server.round_robin) return left.waiting.front() < right.waiting.front();
    const bool left_is_next = left.key > server.last_key;
    if (left_is_next != (right.key > server.last_key)) return left_is_next;
    return left.key < right.key;
}

bool Core::may_start(Server& server, const Waiting& first) {
    if (server.is_memory) return has_room(server, queue_[first.packet]);
    if (!server.bounded || first.last) return true;
    return server.channels[first.channel].free_at(now_ps_) >= first.flits;
}

}  // namespace tilewright
