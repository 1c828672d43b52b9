// A hop of a packet: the timing law, the way to the next server, credits. Most of most runs is this,
// so it is inline in the loop and in the arbiter.
#pragma once

#include <algorithm>

#include "core.hpp"

namespace tilewright {

inline int64_t Core::later(int64_t from_ps, int64_t by_ps, int64_t server, int64_t id) const {
    if (by_ps > kLastPs - from_ps) [[unlikely]] {
        raise_fault(Fault::kTimeLimit, server, id, now_ps_);
    }
    return from_ps + by_ps;
}

inline void Core::add_wait(Server& server, int64_t time_ps) {
    int64_t sum_ps;
    if (__builtin_add_overflow(server.wait_ps, time_ps, &sum_ps)) [[unlikely]] {
        raise_fault(Fault::kWaitLimit, &server - servers_.data());
    }
    server.wait_ps = sum_ps;
}

// Let the server look for a packet at this time, unless it looks earlier anyhow. The packet, if
// any, is first in its queue and cannot start before.
inline void Core::check_at(Server& server, uint32_t index, int64_t at_ps, uint32_t slot) {
    if (server.check_ps != kNever && at_ps >= server.check_ps) return;
    server.check_ps = at_ps;
    if (server.booked_ps == at_ps) return;
    if (slot == kNone || server.booked_ps != kNever) return push_check(index, at_ps);
    server.booked_ps = at_ps;
    Event& packet = queue_[slot];
    packet.time_ps = at_ps;
    packet.rank = grant_rank(index);
    schedule(slot);
}

// The packet leaves the buffer behind the server before. Tells if it may have moved.
[[gnu::always_inline]] inline bool Core::return_credit(uint32_t slot, const Hop& before,
                                                       int64_t tail_ps) {
    const bool touches =
        num_asleep_ > 0 && servers_[before.server].island != queue_[slot].island;
    if (touches) [[unlikely]] touch(islands_[servers_[before.server].island]);
    const Event& packet = queue_[slot];
    PacketBuffer& buffer = buffers_[before.buffer];
    const int64_t at_ps = later(tail_ps, buffer.credit_ps, before.server, packet.id);
    buffer.give_back({at_ps, packet.flits}, now_ps_);
    silent_ps_ = std::max(silent_ps_, at_ps);
    if (!buffer.returning.is_awaited()) [[likely]] return touches;
    await_credit(servers_[before.server], before.server, at_ps, slot);
    return true;
}

// The packet will be ready in front of the server at its time, which may lie ahead. One that meets
// nobody is in no queue: its event tells when it is ready, and then it starts.
[[gnu::always_inline]] inline void Core::enqueue(Event& packet, uint32_t slot, uint32_t index) {
    Server& server = servers_[index];
    if (num_asleep_ > 0 && server.island != packet.island) [[unlikely]] {
        awaken(islands_[server.island]);  // which can move the packet
        return is_lone_at(server, queue_[slot]) ? await_lone(server, index, queue_[slot], slot)
                                                : enqueue_behind(server, index, slot);
    }
    if (!is_lone_at(server, packet)) return enqueue_behind(server, index, slot);
    await_lone(server, index, packet, slot);
}

[[gnu::always_inline]] inline void Core::await_lone(Server& server, uint32_t index, Event& packet,
                                                    uint32_t slot) {
    server.lone = slot;
    packet.rank = grant_rank(index);
    schedule(packet, slot);
}

[[gnu::always_inline]] inline void Core::push_arrival(Event& packet, uint32_t slot,
                                                      const Hop& hop, int64_t head_ps) {
    ++packet.hop;
    packet.time_ps = hop.has(Hop::kWhole) ? packet.tail_in_ps : head_ps;
    if (!hop.has(Hop::kEager)) return enqueue(packet, slot, hop.server);
    __builtin_prefetch(&servers_[hop.server]);
    packet.rank = grant_rank(hop.server);
    queue_.push(packet, slot);
}

// The timing law: when the packet leaves, and what follows from that. It has room behind the server.
template <Core::Choice kChoice>
[[gnu::always_inline]] inline void Core::serve(Server& server, uint32_t slot, int64_t start_ps,
                                               int64_t hold_ps, int64_t latency_ps,
                                               int64_t ready_ps) {
    constexpr bool kEager = kChoice == Choice::kNever;
    constexpr bool kPlain = kChoice != Choice::kPossible;  // no time but that of its flits
    Event* packet = &queue_[slot];
    const Hop* const way = &hops_[packet->hop];
    const Hop& hop = *way;
    const int64_t flit_ps = server.flit_ps;
    // no sum wraps: one of two numbers that is too large has one of the upper two bits
    const uint64_t done = static_cast<uint64_t>(start_ps) + static_cast<uint64_t>(hold_ps);
    const uint64_t wire = static_cast<uint64_t>(packet->tail_in_ps) + static_cast<uint64_t>(flit_ps);
    const uint64_t tail = std::max(done, wire), arrival = tail + static_cast<uint64_t>(latency_ps);
    if ((tail | arrival) >> kTimeBits != 0) [[unlikely]] {
        raise_fault(Fault::kTimeLimit, hop.server, packet->id, now_ps_);
    }
    const auto done_ps = static_cast<int64_t>(done), tail_ps = static_cast<int64_t>(tail);
    const auto arrival_ps = static_cast<int64_t>(arrival);
    if (tail_ps > done_ps) [[unlikely]] server.stretch_ps += tail_ps - done_ps;
    server.free_ps = tail_ps;
    server.busy_ps += hold_ps;
    server.num_bytes += packet->num_bytes;
    ++server.packets;
    if (tracing_) [[unlikely]] note_trace(hop.server, *packet, ready_ps, start_ps, tail_ps);
    const int64_t head_ps = kPlain ? start_ps + flit_ps : done_ps - (packet->flits - 1) * flit_ps;
    packet->tail_in_ps = arrival_ps;
    if (!kEager && hop.buffer != kNone) buffers_[hop.buffer].free_flits -= packet->flits;
    // only now: it may plan a check, and a new event can move the packet
    if (hop.has(Hop::kReturnsCredit) && return_credit(slot, way[-1], tail_ps)) [[unlikely]] {
        packet = &queue_[slot];
    }
    if (!hop.is_last()) return push_arrival(*packet, slot, way[1], head_ps + latency_ps);
    if (!kPlain && server.is_memory) return take_in(server, slot);
    deliver(slot, arrival_ps);
}

// Those before it were ready when they started, and that took time: it is in order.
[[gnu::always_inline]] inline void Core::grant_on_link(Server& server, uint32_t index,
                                                       uint32_t slot) {
    const Event& packet = queue_[slot];
    const Hop& hop = hops_[packet.hop];
    if (!may_leave(packet.flits, hop.buffer)) [[unlikely]] return keep_waiting(server, index, slot);
    server.forget_lone();
    server.last_queue = hop.queue();
    serve<Choice::kOfLink>(server, slot, now_ps_, packet.flits * server.flit_ps,
                           server.latency_ps, now_ps_);
    if (server.num_queued > 0) plan_next(server, index);
}

}  // namespace tilewright
