// How islands fall asleep, catch up and wake: see island.hpp.
#include "island.hpp"

#include <algorithm>
#include <tuple>

#include "core.hpp"
#include "hop.hpp"

namespace tilewright {

namespace {

constexpr uint32_t kManyPackets = 32;  // an exchange of fewer that tells when it is served tells it soon
// An island is asleep only while none of its events can meet the end of time: the core has to stop
// at such an event before all that come after it.
constexpr int64_t kLatestSleepPs = kLastAccessPs;
constexpr int64_t kLongestHopPs = int64_t{1} << 40;

}  // namespace

// The island of a trip's servers, made of those that are in none yet; kNone if they cannot be one.
uint32_t Core::island_for(RoundTrip& trip) {
    if (trip.gate == kNone || !is_worthwhile(trip)) return kNone;
    uint32_t found = gates_[trip.gate].island;
    for (uint32_t number : {trip.out, trip.back}) {
        const Route& route = routes_[number];
        for (uint32_t hop = 0; hop < route.num_hops; ++hop) {
            const Server& server = servers_[hops_[route.first_hop + hop].server];
            if (server.eager || server.has_service || is_slow(server)) return kNone;
            if (server.island == kNone) continue;
            if (found != kNone && found != server.island) return kNone;
            found = server.island;
        }
    }
    if (found == kNone) {
        found = static_cast<uint32_t>(islands_.size());
        islands_.emplace_back(queue_.events());
    }
    settle_on(islands_[found], found, trip);
    for (uint32_t hop = 0; hop < routes_[trip.back].num_hops; ++hop) {
        const Server& server = servers_[hops_[routes_[trip.back].first_hop + hop].server];
        trip.back_ps += server.flit_ps + server.latency_ps;
    }
    return found;
}

// If a packet may take so long that a time on the island comes near the end of time.
bool Core::is_slow(const Server& server) const {
    const int64_t longest_ps = std::max(server.latency_ps, server.credit_ps);
    return std::max(longest_ps, server.flit_ps * (packet_bytes_ / flit_bytes_)) > kLongestHopPs;
}

// A memory that answers at once would be asked all the time.
bool Core::is_worthwhile(const RoundTrip& trip) const {
    const Server& target = servers_[last_server(trip.out)];
    if (!target.is_memory) return true;
    const Server& first = servers_[hops_[routes_[trip.out].first_hop].server];
    return memories_[target.memory]->least_service_ps(trip.writes) > first.flit_ps;
}

// What is under way in front of the servers belongs to others.
void Core::settle_on(Island& island, uint32_t number, const RoundTrip& trip) {
    if (gates_[trip.gate].island == kNone) {
        gates_[trip.gate].island = number;
        island.num_foreign += gates_[trip.gate].num_tasks;
    }
    for (uint32_t route_number : {trip.out, trip.back}) {
        const Route& route = routes_[route_number];
        for (uint32_t hop = 0; hop < route.num_hops; ++hop) {
            Server& server = servers_[hops_[route.first_hop + hop].server];
            if (server.island != kNone) continue;
            server.island = number;
            island.servers.push_back(hops_[route.first_hop + hop].server);
            if (!server.is_memory) continue;
            island.memories.push_back(server.memory);
            memories_[server.memory]->num_foreign = memories_[server.memory]->num_inside;
        }
    }
    if (island.is_asleep && has_visitors(island)) awaken(island);
}

// Packets of others in front of its servers or in its memory, or their exchanges at its gate.
bool Core::has_visitors(const Island& island) const {
    if (island.num_foreign > 0) return true;
    return std::any_of(island.servers.begin(), island.servers.end(),
                       [this](uint32_t index) { return is_visited(servers_[index]); });
}

bool Core::is_visited(const Server& server) const {
    if (server.is_memory && memories_[server.memory]->num_foreign > 0) return true;
    bool is_found = server.lone != kNone && queue_[server.lone].island != server.island;
    server.each_occupied([&](uint32_t number) {
        const auto& waiting = server.queues[number].waiting;
        for (uint32_t place = 0; place < waiting.size() && !is_found; ++place) {
            is_found = queue_[waiting[place].packet].island != server.island;
        }
    });
    return is_found;
}

// Its events up to the one that the core handles now.
void Core::touch(Island& island) {
    if (!island.is_asleep) return;
    Event limit{};
    limit.time_ps = now_ps_;
    if (running_ || has_failed_) {
        limit.rank = current_rank_;
        limit.id = current_id_;
    } else {
        if (island.touched_run == num_runs_) return;  // what was submitted since is yet to happen
        island.touched_run = num_runs_;
        limit.rank = kGrantPhase << kPhaseShift;
        limit.id = INT64_MIN;
    }
    catch_up(island, limit);
}

// The events of an island before the limit; the time of the last of them. Afterwards, also after an
// error or Ctrl-C, the clock is where it was.
int64_t Core::catch_up(Island& island, const Event& limit) {
    struct Behind {
        Core& core;
        const int64_t now_ps;
        Behind(Core& of, const Event& until) : core(of), now_ps(of.now_ps_) {
            core.catch_up_limit_ = &until;
        }
        ~Behind() {
            core.catch_up_limit_ = nullptr;
            core.now_ps_ = now_ps;
        }
    } behind(*this, limit);
    int64_t last_ps = -1;
    while (island.queue.has_before(limit)) {
        const uint32_t slot = island.queue.top();
        last_ps = now_ps_ = queue_[slot].time_ps;
        island.queue.take_top();
        dispatch(slot);
        count_event();
    }
    return last_ps;
}

void Core::touch_islands() {
    if (touched_run_ == num_runs_) return;
    for (Island& island : islands_) touch(island);
    touched_run_ = num_runs_;
}

// From here on its events are among all others.
void Core::awaken(Island& island) {
    if (!island.is_asleep) return;
    touch(island);
    island.is_asleep = false;
    --num_asleep_;
    for (uint32_t slot; (slot = island.queue.top()) != kNone;) {
        island.queue.take_top();
        queue_.push(slot);
    }
    island.due_ps = kNever;
}

// An event in the queue of the core that belongs to an island which is asleep.
void Core::meet(uint32_t slot) {
    const uint32_t number = queue_[slot].island;
    touch(islands_[number]);
    dispatch(slot);
    plan_catch_up(islands_[number], number);
}

// An exchange of others comes, and will use the gate.
void Core::share_gate(uint32_t number) {
    ++islands_[number].num_foreign;
    awaken(islands_[number]);
}

// An exchange on an island starts, which may fall asleep if nobody else is there.
void Core::start_home(uint32_t slot, uint32_t number) {
    Island& island = islands_[number];
    const Task& task = tasks_[slot];
    Progress& progress = progress_[slot];
    progress.packets_unserved = progress.packets_awaited = task.definition->num_packets;
    progress.started_ps = now_ps_;
    auto place = island.tasks.end();  // in the order in which the gate takes them
    for (; place != island.tasks.begin(); --place) {
        const uint32_t before = *(place - 1);
        if (progress_[before].started_ps < now_ps_ || tasks_[before].id < task.id) break;
    }
    island.tasks.insert(place, slot);
    const bool is_late = now_ps_ > kLatestSleepPs;
    if (island.is_asleep) return is_late ? awaken(island) : touch(island);
    const bool tells_soon = task.definition->served_effect != kNoEffect &&
                            task.definition->num_packets < kManyPackets;
    island.is_asleep = !tracing_ && !tells_soon && !is_late && !has_visitors(island);
    num_asleep_ += island.is_asleep;
    island.touched_run = running_ ? -1 : num_runs_;
}

uint32_t Core::island_of(const Task& task) const {
    const Definition& definition = *task.definition;
    return definition.kind == Kind::kExchange ? trips_[definition.route].island : kNone;
}

void Core::touch_island_of(uint32_t task) {
    const uint32_t island = island_of(tasks_[task]);
    if (island != kNone) touch(islands_[island]);
}

// From now on somebody sees its end.
void Core::look_out_for(uint32_t task) {
    const uint32_t island = island_of(tasks_[task]);
    if (island != kNone) plan_catch_up(islands_[island], island);
}

void Core::leave_gate(uint32_t slot, const RoundTrip& trip) {
    if (trip.gate == kNone) return;
    Gate& gate = gates_[trip.gate];
    --gate.num_tasks;
    if (trip.island != kNone) {
        std::erase(islands_[trip.island].tasks, slot);
    } else if (gate.island != kNone) {
        --islands_[gate.island].num_foreign;
    }
}

// When a packet is served, or its answer back. What others see of it goes to the queue of the core:
// that the last packet is served, and the end of the task. Answers come back in the order in which
// the last server takes them.
void Core::deliver_home(uint32_t slot) {
    const Event& packet = queue_[slot];
    Progress& progress = progress_[packet.subject];
    if (packet.returning) {
        if (--progress.packets_awaited > 0) return schedule(slot);
        const bool is_late = catch_up_limit_ != nullptr && packet < *catch_up_limit_;
        return is_late ? end_late(slot) : queue_.push(slot);
    }
    if (std::tie(packet.time_ps, packet.id) > std::tie(progress.end_ps, progress.last_served_id)) {
        progress.end_ps = packet.time_ps;
        progress.last_served_id = packet.id;
    }
    schedule(slot);
    if (--progress.packets_unserved > 0) return;
    const uint32_t task = queue_[slot].subject;
    if (tasks_[task].definition->served_effect == kNoEffect) return;
    Event served{};
    served.time_ps = progress.end_ps;
    served.rank = kCompletePhase << kPhaseShift;
    served.id = progress.last_served_id;
    served.subject = task;
    served.duty = kTellServed;
    queue_.push(queue_.add(served));
}

// Nobody sees an end which may lie behind the clock of the core: others, that are seen only together
// with it, are still to come.
void Core::end_late(uint32_t slot) {
    const Event& packet = queue_[slot];
    const Island& island = islands_[packet.island];
    const Task& task = tasks_[packet.subject];
    const auto place = std::find(island.tasks.begin(), island.tasks.end(), packet.subject);
    bool is_unseen = is_quiet(island, static_cast<size_t>(place - island.tasks.begin()));
    for (uint32_t number : island.tasks) {
        if (is_unseen) break;
        is_unseen = progress_[number].packets_awaited > 0 && is_plain(task) &&
                    end_together(task, tasks_[number]);
    }
    if (!is_unseen) {
        raise_fault(Fault::kTimeReversed, packet.rank & kLowMask, packet.id, packet.time_ps);
    }
    schedule(slot);
}

// What an island has asked for. That it catches up is no event: if nothing happens, the clock stays.
void Core::do_duty(uint32_t slot) {
    const Event event = queue_[slot];
    queue_.remove(slot);
    if (event.duty == kTellServed) {
        now_ps_ = event.time_ps;
        effects_.emplace_back(now_ps_, tasks_[event.subject].definition->served_effect);
        return;
    }
    Island& island = islands_[event.island];
    if (!island.is_asleep || island.due_ps != event.time_ps) return;  // it has planned anew
    island.due_ps = kNever;
    Event limit = event;
    ++limit.id;
    const int64_t clock_ps = now_ps_;
    now_ps_ = event.time_ps;
    const int64_t last_ps = catch_up(island, limit);
    plan_catch_up(island, event.island);
    now_ps_ = std::max(clock_ps, last_ps);
}

// Before any of its tasks can end, or tell that it is served.
void Core::plan_catch_up(Island& island, uint32_t number) {
    if (!island.is_asleep) return;
    settle_served(island);
    const uint32_t next = island.queue.top();
    if (next == kNone) return;
    Event due{};
    due.time_ps = least_end_ps(island);
    if (due.time_ps == INT64_MAX) {  // nobody waits for it
        due.time_ps = queue_[next].time_ps;
        due.rank = queue_[next].rank;
        due.id = queue_[next].id;
    }
    island.planned_ps = now_ps_;
    catch_up_at(island, number, due);
}

// A task has started. If it is the last of several that start at once, the plan for the others holds.
void Core::plan_for(uint32_t slot, uint32_t number) {
    Island& island = islands_[number];
    const bool is_known = island.is_asleep && island.planned_ps == now_ps_;
    if (!is_known || island.due_ps == kNever || island.tasks.back() != slot) {
        return plan_catch_up(island, number);
    }
    const RoundTrip& trip = trips_[tasks_[slot].definition->route];
    Way& way = island.way(trip.gate, last_server(trip.back));
    Event due{};
    due.time_ps = least_end_ps(slot, way.bytes);
    way.bytes += awaited_bytes(slot);
    catch_up_at(island, number, due);
}

void Core::catch_up_at(Island& island, uint32_t number, Event due) {
    if (island.due_ps != kNever && island.due_ps <= due.time_ps) return;
    if (due.time_ps > kLatestSleepPs) return awaken(island);
    island.due_ps = due.time_ps;
    due.island = number;
    due.duty = kCatchUp;
    queue_.push(queue_.add(due));
}

// No event of its tasks that others see comes before: all of the island up to now has happened.
int64_t Core::least_end_ps(Island& island) const {
    int64_t least_ps = INT64_MAX;
    for (Way& way : island.ways) way.bytes = 0;
    Company company;
    for (size_t place = 0; place < island.tasks.size(); ++place) {
        const uint32_t slot = island.tasks[place];
        const RoundTrip& trip = trips_[tasks_[slot].definition->route];
        const uint32_t last = last_server(trip.back);
        Way& way = island.way(trip.gate, last);
        const int64_t bytes = awaited_bytes(slot);
        company.add(last, progress_[slot].packets_awaited, bytes);
        if (progress_[slot].packets_awaited > 0) {
            company.task = slot;
            company.bytes_before = way.bytes;
        }
        way.bytes += bytes;
        if (is_quiet(island, place)) continue;
        least_ps = std::min(least_ps, is_plain(tasks_[slot])
                                          ? least_end_ps(company)
                                          : least_end_ps(slot, way.bytes - bytes));
        company = {};
    }
    return least_ps;
}

// The last of their answers: all come through one server, and none before its own task allows.
int64_t Core::least_end_ps(const Company& company) const {
    if (company.task == kNone) return INT64_MAX;
    const Server& last = servers_[company.last];
    const int64_t flits = std::max(company.packets, company.bytes / flit_bytes_);
    const int64_t free_ps = std::max(now_ps_, last.free_ps);
    return std::max(free_ps + flits * last.flit_ps + last.latency_ps,
                    least_end_ps(company.task, company.bytes_before));
}

// Before its answers others come the same way, but for those under way with them.
int64_t Core::least_end_ps(uint32_t slot, int64_t bytes_before) const {
    const Definition& definition = *tasks_[slot].definition;
    const Progress& progress = progress_[slot];
    const RoundTrip& trip = trips_[definition.route];
    const Server& target = servers_[last_server(trip.out)];
    const Server& last = servers_[last_server(trip.back)];
    const int64_t free_ps = std::max(now_ps_, last.free_ps);
    const int64_t own_bytes = awaited_bytes(slot);
    // when its last packet has set out, or is about to
    const int64_t under_way = gates_[trip.gate].most * packet_bytes_;
    const int64_t bytes = std::max<int64_t>(0, bytes_before + own_bytes - under_way);
    int64_t served_ps = bytes == 0 ? now_ps_ : free_ps + bytes / flit_bytes_ * last.flit_ps;
    served_ps += target.is_memory ? memories_[target.memory]->least_service_ps(trip.writes)
                                  : target.flit_ps + target.latency_ps;
    const bool is_one_read = target.is_memory && !trip.writes && definition.num_packets == 1;
    if (is_one_read && progress.packets_unserved > 0) {
        const int64_t read_ps = memories_[target.memory]->least_read_ps(
            now_ps_, tasks_[slot].id, definition.tag, definition.amount);
        served_ps = std::max(served_ps, read_ps);
    }
    int64_t end_ps = INT64_MAX;
    if (progress.packets_awaited > 0) {
        const int64_t flits = std::max<int64_t>(progress.packets_awaited, own_bytes / flit_bytes_);
        const int64_t last_served_ps = progress.packets_unserved > 0 ? served_ps : progress.end_ps;
        end_ps = std::max(free_ps + flits * last.flit_ps + last.latency_ps,
                          last_served_ps + trip.back_ps);
    }
    const bool tells = definition.served_effect != kNoEffect && progress.packets_unserved > 0;
    return tells ? std::min(end_ps, served_ps) : end_ps;
}

// At least so many its answers still bring.
int64_t Core::awaited_bytes(uint32_t slot) const {
    const Task& task = tasks_[slot];
    const Definition& definition = *task.definition;
    const int64_t packets = progress_[slot].packets_awaited;
    if (trips_[definition.route].writes) return packets * flit_bytes_;
    return least_bytes(task, definition, packets);
}

// If its end is all that others see of the task, and that only together with the next one's.
bool Core::is_quiet(const Island& island, size_t place) const {
    if (place + 1 == island.tasks.size()) return false;
    const Task& task = tasks_[island.tasks[place]];
    return is_plain(task) && end_together(task, tasks_[island.tasks[place + 1]]);
}

// If nobody sees the task but one that waits for its end.
bool Core::is_plain(const Task& task) const {
    const Definition& definition = *task.definition;
    if (task.watched || task.performed || task.followers != kNone) return false;
    if (definition.served_effect != kNoEffect || definition.dependents.size() != 1) return false;
    const auto& extras = submissions_[task.submission].graph->extras;
    return definition.extra == kNone || !extras[definition.extra].tells();
}

// If one task waits for both, and is all that does.
bool Core::end_together(const Task& task, const Task& other) const {
    if (task.submission != other.submission) return false;
    const auto &mine = task.definition->dependents, &others = other.definition->dependents;
    if (mine.size() != 1 || others.size() != 1) return false;
    const auto& dependents = submissions_[task.submission].graph->dependents;
    return dependents[mine.first] == dependents[others.first];
}

// That so many packets of a task carry, whichever they are.
int64_t Core::least_bytes(const Task& task, const Definition& definition, int64_t packets) const {
    int64_t segment_bytes = definition.amount, num_segments = 1;
    if (definition.cut != kNone) {
        const Cut& cut = submissions_[task.submission].graph->cuts[definition.cut];
        segment_bytes = cut.segment_bytes;
        num_segments = definition.num_packets / cut.segment_packets;
    }
    const int64_t ends = std::min(packets, num_segments);  // that may be small
    const int64_t end_bytes = (segment_bytes - 1) % packet_bytes_ + 1;
    return ends * end_bytes + (packets - ends) * packet_bytes_;
}

// What its memories have decided before now.
void Core::settle_served(const Island& island) {
    for (uint32_t number : island.memories) {
        deliver_served(memories_[number]->server, memories_[number]->catch_up(now_ps_));
    }
}

}  // namespace tilewright
