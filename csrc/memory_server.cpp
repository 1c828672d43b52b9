// Packets that end in a memory: section 5 of docs/engine.md.
#include "memory_server.hpp"

#include "core.hpp"

namespace tilewright {

int64_t Core::add_banked_memory(const nanobind::object&, const std::vector<int64_t>& numbers,
                                const std::vector<uint8_t>& bank_table, int64_t capacity_bytes) {
    return add_memory(
        std::make_unique<MemoryOf<BankedCore>>(capacity_bytes, numbers, bank_table));
}

int64_t Core::add_simple_memory(const nanobind::object&, const std::vector<int64_t>& numbers,
                                int64_t capacity_bytes) {
    return add_memory(std::make_unique<MemoryOf<SimpleCore>>(
        capacity_bytes, numbers[0], numbers[1], numbers[2], numbers[3]));
}

int64_t Core::add_memory(std::unique_ptr<MemoryServer> memory) {
    check_outside();
    Server server;
    server.eager = false;
    server.whole = true;
    server.is_memory = true;
    server.memory = static_cast<uint32_t>(memories_.size());
    memories_.push_back(std::move(memory));
    servers_.push_back(std::move(server));
    return static_cast<int64_t>(servers_.size()) - 1;
}

AccessRequest Core::access_of(const Event& packet) const {
    const Task& task = tasks_[packet.subject];
    const Definition& definition = definition_of(task);
    const Part part = part_of(task, definition, packet.id - task.id);
    const bool reads = definition.kind == Kind::kExchange && !trips_[definition.route].writes;
    return {!reads, definition.tag + part.offset, part.num_bytes};
}

bool Core::has_room(const Server& server, const Event& packet) const {
    return memories_[server.memory]->can_accept(now_ps_, access_of(packet));
}

void Core::take_in(Server& server, uint32_t slot) {
    MemoryServer& memory = *memories_[server.memory];
    const Event& packet = queue_[slot];
    memory.accept(now_ps_, packet.id, access_of(packet));
    memory.packets[packet.id] = slot;
    decide_at(server, now_ps_);
}

// Let the memory decide at this time, unless it does so earlier anyhow.
void Core::decide_at(Server& server, int64_t at_ps) {
    MemoryServer& memory = *memories_[server.memory];
    if (memory.decide_ps != kNever && at_ps >= memory.decide_ps) return;
    memory.decide_ps = at_ps;
    Event event{};
    event.time_ps = at_ps;
    event.rank = (kDecidePhase << kPhaseShift) | static_cast<uint32_t>(&server - servers_.data());
    push(event);
}

void Core::decide(uint32_t index) {
    Server& server = servers_[index];
    MemoryServer& memory = *memories_[server.memory];
    if (memory.decide_ps != now_ps_) return;  // it has decided earlier, and planned anew
    memory.decide_ps = kNever;
    for (const auto& [id, done_ps, refresh_ps] : memory.advance(now_ps_)) {
        const auto found = memory.packets.find(id);
        const uint32_t slot = found->second;
        memory.packets.erase(found);
        if (is_traced(id)) memory_trace_.emplace_back(index, id, now_ps_, done_ps, refresh_ps);
        deliver(slot, done_ps);
    }
    if (const int64_t next_ps = memory.next_ps(); next_ps >= 0) decide_at(server, next_ps);
    if (server.num_queued > 0) check_next(server, index, true);
}

// For a packet that finds no room: when it does, as far as that is decided.
void Core::await_room(Server& server, const Event& packet) {
    const int64_t room_ps = memories_[server.memory]->room_ps(access_of(packet));
    if (room_ps >= 0) decide_at(server, std::max(room_ps, now_ps_));
}

}  // namespace tilewright
