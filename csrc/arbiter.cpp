// Servers that have to choose: queues in front of them, and which packet starts. Section 2 of
// docs/engine.md.
//
// A server looks for a packet when one may be able to start. The event of such a look is that of the
// packet itself, if it cannot start before that time: so a packet that meets no other needs no
// further event. At most one packet in front of a server has its event under way (booked_ps). The
// lone packet is in no queue: it is ready, and the server free, before any other can start.
#include <utility>

#include "core.hpp"
#include "hop.hpp"

namespace tilewright {

void Core::push_check(uint32_t index, int64_t at_ps) {
    Event event{};
    event.time_ps = at_ps;
    event.rank = grant_rank(index);
    event.id = -1;
    event.island = servers_[index].island;
    push(event);
}

// A stalled server looks again when the credit of a packet is back.
void Core::await_credit(Server& server, uint32_t index, int64_t at_ps, uint32_t packet) {
    const bool is_foreign = server.island != queue_[packet].island;
    check_at(server, index, std::max(at_ps, server.free_ps), kNone);
    if (is_foreign) plan_catch_up(islands_[server.island], server.island);
}

// Into the queue of its input and channel.
inline const Ring<Waiting>& Core::line_up(Server& server, uint32_t slot) {
    const Event& packet = queue_[slot];
    const Hop hop = hops_[packet.hop];
    auto& waiting = server.first_queue[hop.queue()].waiting;
    waiting.push_sorted({packet.time_ps, packet.id, slot, packet.flits, hop.buffer});
    server.note_pushed(hop.queue());
    return waiting;
}

// The packet may meet others in front of the server. One that has met nobody and is ready before
// all of them starts before all of them.
void Core::enqueue_behind(Server& server, uint32_t index, uint32_t slot) {
    const int64_t ready_ps = queue_[slot].time_ps;
    silent_ps_ = std::max(silent_ps_, ready_ps);  // it may be held up before it has an event
    if (server.lone != kNone) {
        const int64_t lone_ps = queue_[server.lone].time_ps;
        server.note_lone(lone_ps);
        if (ready_ps > lone_ps) {
            line_up(server, slot);
            return;
        }
        line_up(server, std::exchange(server.lone, kNone));
    }
    const auto& waiting = line_up(server, slot);
    if (waiting.front().packet == slot) {
        check_at(server, index, std::max(ready_ps, server.free_ps), slot);
    }
}

inline bool Core::may_start(Server& server, const Waiting& first) {
    if (first.ready_ps > now_ps_) return false;
    if (server.is_memory) return has_room(server, queue_[first.packet]);
    return may_leave(first.flits, first.buffer);
}

// The queue whose first packet starts now.
inline uint32_t Core::choose(Server& server) {
    if (server.num_queued == 0) return kNone;
    if (!server.has_one_queue()) return choose_among(server);
    const auto number = static_cast<uint32_t>(std::countr_zero(server.occupied));
    return may_start(server, server.first_queue[number].waiting.front()) ? number : kNone;
}

inline std::pair<int64_t, int64_t> Core::service_times(Server& server, uint32_t slot) {
    const Event& packet = queue_[slot];
    if (packet.num_bytes == 0) {
        return {tasks_[packet.subject].definition->amount, server.latency_ps};
    }
    if (server.has_service) [[unlikely]] return asked_times(server, packet);
    return {packet.flits * server.flit_ps, server.latency_ps};
}

// A packet of the queue starts: in order, and the next turn is another queue's.
inline void Core::note_turn(Server& server, uint32_t index, uint32_t number, int64_t ready_ps,
                            int64_t id) {
    Queue& queue = server.first_queue[number];
    const bool is_in_order = ready_ps > queue.last_ready_ps ||
                             (ready_ps == queue.last_ready_ps && id >= queue.last_id);
    if (!is_in_order) [[unlikely]] raise_fault(Fault::kOrder, index, id, now_ps_);
    queue.last_ready_ps = ready_ps;
    queue.last_id = id;
    server.last_queue = number;
}

// The first packet of a queue starts.
inline void Core::take(Server& server, uint32_t index, uint32_t number) {
    Queue& queue = server.first_queue[number];
    const Waiting first = queue.waiting.front();
    note_turn(server, index, number, first.ready_ps, first.id);
    if (first.ready_ps < now_ps_ || queue.num_counted > 0) {
        add_wait(server, now_ps_ - first.ready_ps);
        server.count_arrivals(now_ps_);
        --queue.num_counted;
        --server.queue;
    }
    queue.waiting.pop_front();
    server.note_popped(number);
    int64_t hold_ps = 0, latency_ps = 0;
    if (!server.is_memory) std::tie(hold_ps, latency_ps) = service_times(server, first.packet);
    serve<Choice::kPossible>(server, first.packet, now_ps_, hold_ps, latency_ps, first.ready_ps);
}

// Unless it has looked earlier and planned anew, or a packet's own event is to come.
void Core::look(Server& server, uint32_t index) {
    if (server.check_ps != now_ps_ || server.booked_ps == now_ps_) return;
    server.is_memory ? admit(server, index) : grant(server, index);
}

[[gnu::flatten]] void Core::grant(Server& server, uint32_t index) {
    server.check_ps = kNever;
    if (server.is_stalled) [[unlikely]] end_stall(server);
    const uint32_t number = choose(server);
    if (number == kNone) return check_next(server, index, false);
    take(server, index, number);
    if (server.num_queued > 0) plan_next(server, index);
}

// None of the packets in front of the server is known to lack credits any more.
void Core::end_stall(Server& server) {
    server.is_stalled = false;
    for (uint32_t buffer : server.buffers) {
        if (buffer != kNone) buffers_[buffer].returning.set_awaited(false);
    }
}

// After a start, while others may be in front of the server. In the only queue the first packet
// starts before all that are there; if it will not have to wait, it is as if it met nobody.
void Core::plan_next(Server& server, uint32_t index) {
    if (!server.has_one_queue()) return check_next(server, index, true);
    const auto number = static_cast<uint32_t>(std::countr_zero(server.occupied));
    auto& waiting = server.first_queue[number].waiting;
    const Waiting next = waiting.front();
    const bool waits = next.ready_ps < server.free_ps || next.ready_ps <= now_ps_;
    if (waits || server.booked_ps != kNever) {
        return check_at(server, index, std::max(next.ready_ps, server.free_ps), next.packet);
    }
    waiting.pop_front();
    server.note_popped(number);
    if (server.num_queued > 0) server.note_lone(next.ready_ps);
    await_lone(server, index, queue_[next.packet], next.packet);
}

// A packet that has met nobody is ready: it starts, or it waits like any other.
void Core::grant_lone(Server& server, uint32_t index, uint32_t slot) {
    const Event& packet = queue_[slot];
    const Hop hop = hops_[packet.hop];
    const bool may_start = server.is_memory ? has_room(server, packet)
                                            : may_leave(packet.flits, hop.buffer);
    if (!may_start) [[unlikely]] return keep_waiting(server, index, slot);
    server.forget_lone();
    note_turn(server, index, hop.queue(), now_ps_, packet.id);
    int64_t hold_ps = 0, latency_ps = 0;
    if (!server.is_memory) std::tie(hold_ps, latency_ps) = service_times(server, slot);
    serve<Choice::kPossible>(server, slot, now_ps_, hold_ps, latency_ps, now_ps_);
    if (server.num_queued > 0) server.is_memory ? admit(server, index) : plan_next(server, index);
}

// It is alone and ready, but cannot start.
void Core::keep_waiting(Server& server, uint32_t index, uint32_t slot) {
    server.lone = kNone;
    server.check_ps = now_ps_;
    server.booked_ps = kNever;
    line_up(server, slot);
    look(server, index);
}

// A memory takes in all that it has room for, which takes no time.
void Core::admit(Server& server, uint32_t index) {
    server.check_ps = kNever;
    for (uint32_t number; (number = choose(server)) != kNone;) take(server, index, number);
    if (server.num_queued > 0) check_next(server, index, false);
}

// What a Python server decides.
std::pair<int64_t, int64_t> Core::asked_times(Server& server, const Event& packet) {
    const Task& task = tasks_[packet.subject];
    const int64_t place = packet.id - task.id;
    const Definition& definition = *task.definition;
    const nanobind::object times =
        server.service(packet.id, task.id, place, packet.flits, packet.num_bytes, definition.tag,
                       part_of(task, definition, place).offset, now_ps_);
    return {nanobind::cast<int64_t>(times[0]), nanobind::cast<int64_t>(times[1])};
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
            Credits& returning = buffers_[first.buffer].returning;
            server.is_stalled = true;
            returning.set_awaited(true);
            at_ps = returning.first_ps();
            if (at_ps == kNever) return;
            slot = kNone;
        }
        if (next_ps != kNever && at_ps >= next_ps) return;
        next_ps = at_ps;
        packet = slot;
    });
    if (next_ps != kNever) check_at(server, index, std::max(next_ps, now_ps_), packet);
}

uint32_t Core::choose_among(Server& server) {
    uint32_t best = kNone;
    server.each_occupied([&](uint32_t number) {
        if (!may_start(server, server.queues[number].waiting.front())) return;
        if (best == kNone || goes_before(server, server.queues[number], server.queues[best])) {
            best = number;
        }
    });
    return best;
}

bool Core::goes_before(const Server& server, const Queue& left, const Queue& right) {
    if (!server.round_robin) return left.waiting.front() < right.waiting.front();
    const int64_t last_key = server.last_key();
    const bool left_is_next = left.key > last_key;
    if (left_is_next != (right.key > last_key)) return left_is_next;
    return left.key < right.key;
}

}  // namespace tilewright
