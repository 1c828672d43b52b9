// Packets that end in a memory: section 5 of docs/engine.md.
#include "memory_server.hpp"

#include <algorithm>

#include "core.hpp"

namespace tilewright {

int64_t Core::add_banked_memory(const nanobind::object& spec, int64_t capacity_bytes) {
    const size_t known = nanobind::cast<size_t>(
        shape_indices_.attr("setdefault")(spec, shapes_.size()));
    if (known == shapes_.size()) shapes_.push_back(std::make_shared<MemoryShape>(spec));
    return add_memory(std::make_unique<MemoryOf<BankedCore>>(capacity_bytes, shapes_[known]));
}

int64_t Core::add_simple_memory(const nanobind::object& spec, int64_t capacity_bytes) {
    return add_memory(std::make_unique<MemoryOf<SimpleCore>>(capacity_bytes, spec));
}

int64_t Core::add_memory(std::unique_ptr<MemoryServer> memory) {
    check_outside();
    Server server;
    server.eager = false;
    server.whole = true;
    server.is_memory = true;
    server.is_link = false;
    server.memory = static_cast<uint32_t>(memories_.size());
    memory->server = static_cast<uint32_t>(servers_.size());
    memories_.push_back(std::move(memory));
    servers_.push_back(std::move(server));
    return static_cast<int64_t>(servers_.size()) - 1;
}

AccessRequest Core::access_of(const Event& packet) const {
    const Task& task = tasks_[packet.subject];
    const Definition& definition = *task.definition;
    const Part part = part_of(task, definition, packet.id - task.id);
    const bool reads = definition.kind == Kind::kExchange && !trips_[definition.route].writes;
    return {!reads, definition.tag + part.offset, part.num_bytes};
}

bool Core::has_room(const Server& server, const Event& packet) const {
    MemoryServer& memory = *memories_[server.memory];
    if (memory.blocked_id == packet.id && memory.room_ps > now_ps_) return false;
    if (memory.looked_at_id != packet.id) {
        memory.looked_at = access_of(packet);
        memory.looked_at_id = packet.id;
    }
    const bool is_there = memory.has_room(now_ps_, memory.looked_at);
    memory.blocked_id = is_there ? -1 : packet.id;
    return is_there;
}

void Core::take_in(Server& server, uint32_t slot) {
    MemoryServer& memory = *memories_[server.memory];
    const Event& packet = queue_[slot];
    if (now_ps_ > kLastAccessPs) [[unlikely]] {
        raise_fault(Fault::kLateAccess, memory.server, packet.id, now_ps_);
    }
    if (memory.looked_at_id != packet.id) memory.looked_at = access_of(packet);
    memory.looked_at_id = -1;
    const int64_t wake_ps = memory.accept(now_ps_, packet.id, memory.looked_at, slot);
    ++memory.num_inside;
    memory.num_foreign += packet.island != server.island;
    memory.blocked_id = -1;
    decide_at(server, wake_ps);
}

// Let the memory decide at this time, unless it does so earlier anyhow.
void Core::decide_at(Server& server, int64_t at_ps) {
    MemoryServer& memory = *memories_[server.memory];
    if (memory.decide_ps != kNever && at_ps >= memory.decide_ps) return;
    memory.decide_ps = at_ps;
    Event event{};
    event.time_ps = at_ps;
    event.rank = (kDecidePhase << kPhaseShift) | static_cast<uint32_t>(&server - servers_.data());
    event.island = server.island;
    push(event);
}

void Core::decide(uint32_t index) {
    Server& server = servers_[index];
    MemoryServer& memory = *memories_[server.memory];
    if (memory.decide_ps != now_ps_) return;  // it has decided earlier, and planned anew
    deliver_served(index, memory.advance(now_ps_));
    if (memory.retry_ps != kNever && memory.retry_ps <= now_ps_) {
        memory.retry_ps = kNever;
        admit(server, index);  // plans no decision, since decide_ps is now
    }
    memory.decide_ps = kNever;
    const int64_t wake_ps = memory.wake_ps();
    const bool is_retry_next =
        memory.retry_ps != kNever && (wake_ps < 0 || memory.retry_ps < wake_ps);
    const int64_t next_ps = is_retry_next ? memory.retry_ps : wake_ps;
    if (next_ps >= 0) decide_at(server, next_ps);
}

void Core::deliver_served(uint32_t index, const std::vector<Completion>& completions) {
    const uint32_t island = servers_[index].island;
    MemoryServer& memory = *memories_[servers_[index].memory];
    memory.num_inside -= static_cast<uint32_t>(completions.size());
    for (const Completion& done : completions) {
        memory.num_foreign -= queue_[done.tag].island != island;
        if (is_traced(done.access_id)) {
            memory_trace_.emplace_back(index, done.access_id, done.decided_ps, done.done_ps,
                                       done.refresh_ps);
        }
        if (done.done_ps > kLastPs) [[unlikely]] {
            raise_fault(Fault::kTimeLimit, index, done.access_id, done.decided_ps);
        }
        deliver(done.tag, done.done_ps);
    }
}

// The packet that was just looked at finds no room: look again when there may be some.
void Core::await_room(Server& server) {
    MemoryServer& memory = *memories_[server.memory];
    if (memory.room_ps >= kNeverPs) return;
    const int64_t retry_ps = std::max(memory.room_ps, now_ps_);
    if (memory.retry_ps == kNever || retry_ps < memory.retry_ps) memory.retry_ps = retry_ps;
    decide_at(server, memory.retry_ps);
}

// Before anything is read from outside: the decisions before now that were put off.
void Core::settle_memories() {
    touch_islands();
    if (settled_events_ == events_ && settled_ps_ == now_ps_) return;
    for (const auto& memory : memories_) deliver_served(memory->server, memory->catch_up(now_ps_));
    settled_events_ = events_;
    settled_ps_ = now_ps_;
}

std::vector<TraceRecord> Core::take_memory_trace() {
    settle_memories();
    std::stable_sort(memory_trace_.begin(), memory_trace_.end(),
                     [](const TraceRecord& one, const TraceRecord& other) {
                         return std::tie(std::get<2>(one), std::get<0>(one)) <
                                std::tie(std::get<2>(other), std::get<0>(other));
                     });
    return std::exchange(memory_trace_, {});
}

std::vector<std::vector<int64_t>> Core::memory_counters(uint32_t server) {
    settle_memories();
    return memories_[servers_[server].memory]->counters();
}

std::vector<std::vector<int64_t>> Core::memory_openings(uint32_t server) {
    settle_memories();
    return memories_[servers_[server].memory]->openings();
}

}  // namespace tilewright
