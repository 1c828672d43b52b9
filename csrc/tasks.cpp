// Task graphs, signals and wake-ups: sections 4 and 5 of docs/engine.md.
#include <algorithm>
#include <numeric>

#include "core.hpp"
#include "hop.hpp"

namespace tilewright {

namespace {

constexpr int64_t kSequenceMask = (int64_t{1} << kOwnerShift) - 1;
constexpr size_t kMaxSpareTasks = 64;  // of a graph that is kept for the next
constexpr size_t kMaxSpareGraphs = 1024;
// Tasks start in about the order of their rows: so far ahead lie those that are touched next.
constexpr int kTasksAhead = 6;

}  // namespace

Core::Core(int64_t flit_bytes, int64_t packet_flits, int64_t arrival_salt)
    : flit_bytes_(flit_bytes),
      packet_bytes_(flit_bytes * packet_flits),
      salt_(arrival_salt),
      rank_salt_(static_cast<uint32_t>(arrival_salt) & kLowMask) {}

int64_t Core::add_signal() {
    check_outside();
    if (free_signals_.empty()) {
        signals_.emplace_back();
        return static_cast<int64_t>(signals_.size()) - 1;
    }
    const uint32_t signal = free_signals_.back();
    free_signals_.pop_back();
    signals_[signal].value = 0;
    return signal;
}

void Core::remove_signal(uint32_t signal) {
    check_outside();
    if (!signals_[signal].waiters.empty()) raise_fault(Fault::kAwaitedSignal, signal);
    free_signals_.push_back(signal);
}

int64_t Core::add_gate(int64_t packets) {
    check_outside();
    gates_.push_back({packets, packets});
    return static_cast<int64_t>(gates_.size()) - 1;
}

int64_t Core::add_round_trip(uint32_t out, uint32_t back, int64_t gate, bool writes, bool is_home,
                             int64_t inside) {
    check_outside();
    trips_.push_back({out, back, gate < 0 ? kNone : static_cast<uint32_t>(gate), writes,
                      inside < 0 ? kNone : static_cast<uint32_t>(inside)});
    if (is_home && inside < 0) trips_.back().island = island_for(trips_.back());
    return static_cast<int64_t>(trips_.size()) - 1;
}

int64_t Core::submit(const GraphPtr& graph, int64_t owner_number,
                     const std::vector<int64_t>& after) {
    check_outside();
    std::vector<uint32_t> earlier;
    for (int64_t id : after) {
        const uint32_t task = find_live(id);
        if (task != kNone) earlier.push_back(task);
    }
    for (int64_t id : graph->earlier_ids) find_live(id);  // all known, before anything changes
    Owner& owner = owners_.submitter(owner_number);
    const int64_t first_id = (owner_number << kOwnerShift) + owner.next_sequence;
    if (graph->num_ids > kSequenceMask + 1 - owner.next_sequence) {
        raise_fault(Fault::kIdLimit, owner_number);
    }
    if (graph->max_delay_ps > kLastPs - now_ps_) refuse_late(*graph, first_id);
    if (graph->definitions.empty()) return first_id;
    owner.next_sequence += graph->num_ids;
    const auto num_tasks = static_cast<uint32_t>(graph->definitions.size());
    const uint32_t first_task = tasks_.take(num_tasks);
    progress_.resize(tasks_.size());
    const uint32_t submission =
        submissions_.add(Submission{graph, &owner, first_id, num_tasks, first_task});
    owner.submissions.push_back(submission);
    num_live_ += num_tasks;
    StartRun delayed{now_ps_, 0, {}};
    for (uint32_t row = 0; row < num_tasks; ++row) {
        const Definition& definition = graph->definitions[row];
        const int64_t id = first_id + graph->offsets[row];
        const uint32_t slot = first_task + row;
        tasks_[slot] = Task{.id = id, .definition = &definition, .submission = submission};
        count_conditions(slot, *graph, row, earlier);
        if (tasks_[slot].pending > 0) continue;
        if (definition.delay_ps > 0) {
            delayed.tasks.push_back(slot);
        } else {
            start(slot);
        }
    }
    if (!delayed.tasks.empty()) start_delayed(std::move(delayed));
    return first_id;
}

// For the first task that could not start before the end of time.
void Core::refuse_late(const Graph& graph, int64_t first_id) const {
    for (size_t row = 0; row < graph.definitions.size(); ++row) {
        later(now_ps_, graph.definitions[row].delay_ps, -1, first_id + graph.offsets[row]);
    }
}

// Watches the last task and returns its id.
int64_t Core::submit_watched(const GraphPtr& graph, int64_t owner,
                             const std::vector<int64_t>& after) {
    submit(graph, owner, after);
    Task& last = tasks_[submissions_[owners_.submitter(owner).submissions.back()].last_task()];
    last.watched = true;
    return last.id;
}

int64_t Core::perform(const GraphPtr& graph, int64_t owner_number) {
    was_submitted_ = false;
    submit(graph, owner_number, {});
    Owner& owner = owners_.submitter(owner_number);
    Task& last = tasks_[submissions_[owner.submissions.back()].last_task()];
    last.performed = true;
    owner.performed_id = last.id;
    was_submitted_ = true;
    return next_wake();
}

int64_t Core::perform_rows(const nanobind::list& rows, int64_t owner) {
    was_submitted_ = false;
    GraphPtr graph;
    if (spare_graphs_.empty()) {
        graph = std::make_shared<Graph>();
    } else {
        graph = std::move(spare_graphs_.back());
        spare_graphs_.pop_back();
        graph->clear();
    }
    compile_into(*graph, rows);
    return perform(graph, owner);
}

void Core::count_conditions(uint32_t slot, const Graph& graph, uint32_t row,
                            const std::vector<uint32_t>& earlier) {
    Task& task = tasks_[slot];
    const Definition& definition = graph.definitions[row];
    task.pending = graph.afters_of(row).size();
    if (task.pending == 0) {
        for (uint32_t other : earlier) follow(slot, other);
    }
    if (definition.kind == Kind::kEarlier) {
        const uint32_t other = find_live(definition.amount);
        if (other != kNone) follow(slot, other);
    }
    if (definition.extra == kNone) return;
    const Span waits = graph.extras[definition.extra].waits;
    for (uint32_t index = waits.first; index < waits.last; ++index) {
        const SignalAmount wait = graph.signals[index];
        Signal& signal = signals_[wait.signal];
        if (signal.value < wait.amount) {
            ++task.pending;
            signal.waiters.push({wait.amount, task.id, slot});
        }
    }
}

// Let a task wait for one of an earlier submission.
void Core::follow(uint32_t slot, uint32_t other) {
    ++tasks_[slot].pending;
    tasks_[other].followers = followers_.add(Follower{slot, tasks_[other].followers});
    look_out_for(other);
}

// One event stands for all tasks that start later: the next of them.
void Core::start_delayed(StartRun run) {
    auto delay_of = [this](uint32_t task) { return tasks_[task].definition->delay_ps; };
    auto earlier = [&](uint32_t left, uint32_t right) { return delay_of(left) < delay_of(right); };
    if (!std::is_sorted(run.tasks.begin(), run.tasks.end(), earlier)) {
        std::stable_sort(run.tasks.begin(), run.tasks.end(), earlier);  // equal delays by id
    }
    push_run(runs_.add(std::move(run)));
}

void Core::push_run(uint32_t slot) {
    const StartRun& run = runs_[slot];
    const Task& task = tasks_[run.tasks[run.next]];
    const int64_t at_ps = later(run.base_ps, task.definition->delay_ps, -1, task.id);
    push_start(kStartRun, slot, at_ps, task.id);
}

void Core::push_start(What what, uint32_t subject, int64_t at_ps, int64_t id) {
    Event event{};
    event.time_ps = at_ps;
    event.rank = arrive_rank(what);
    event.id = id ^ salt_;
    event.subject = subject;
    push(event);
}

void Core::start_next(uint32_t slot) {
    const uint32_t task = runs_[slot].tasks[runs_[slot].next++];
    if (runs_[slot].next < runs_[slot].tasks.size()) {
        push_run(slot);
    } else {
        runs_[slot].tasks = {};
        runs_.remove(slot);
    }
    start(task);
}

void Core::release(uint32_t slot) {
    Task& task = tasks_[slot];
    if (--task.pending > 0) return;
    const int64_t delay_ps = task.definition->delay_ps;
    if (delay_ps == 0) return start(slot);
    const int64_t at_ps = later(now_ps_, delay_ps, -1, task.id);
    push_start(kStartOne, slot, at_ps, task.id);
}

void Core::start(uint32_t slot) {
    Task& task = tasks_[slot];
    const Definition& definition = *task.definition;
    __builtin_prefetch(&task + kTasksAhead);
    __builtin_prefetch(&definition + kTasksAhead);
    task.packets_left = definition.num_packets;
    if (definition.kind == Kind::kTimer || definition.kind == Kind::kEarlier) {
        return push_complete(slot, now_ps_);
    }
    if (definition.kind != Kind::kHold) progress_[slot] = Progress{};
    if (definition.kind == Kind::kExchange) return start_exchange(slot, definition);
    Route& route = routes_[definition.route];
    route.packets_in += definition.num_packets;
    Event packet{};
    packet.time_ps = packet.tail_in_ps = now_ps_;
    packet.id = task.id;
    packet.subject = slot;
    packet.flits = 1;
    packet.hop = route.first_hop;
    packet.route = definition.route;
    if (definition.kind == Kind::kHold) {
        packet.tail_in_ps -= servers_[hops_[route.first_hop].server].flit_ps;  // no wire
        return set_out(queue_.add(packet), true);
    }
    route.bytes_in += definition.amount;
    for (int64_t left = definition.amount; left > 0; left -= packet_bytes_, ++packet.id) {
        packet.num_bytes = std::min(left, packet_bytes_);
        packet.flits = static_cast<uint32_t>((packet.num_bytes - 1) / flit_bytes_ + 1);
        set_out(queue_.add(packet), true);
    }
}

// In front of its first server, where it starts at once if nothing can come before.
void Core::set_out(uint32_t slot, bool more_follows) {
    Event& packet = queue_[slot];
    const Hop hop = hops_[packet.hop];
    packet.rank = grant_rank(hop.server);
    if (hop.has(Hop::kEager)) return queue_.push(slot);
    Server& server = servers_[hop.server];
    const bool is_plain = server.is_link && packet.num_bytes > 0 &&
                          (num_asleep_ == 0 || server.island == packet.island);
    const bool starts = !more_follows && is_plain && is_lone_at(server, packet) &&
                        !is_run_over() && is_next(packet);
    if (!starts) return enqueue(packet, slot, hop.server);
    note_current(packet);
    server.lone = slot;
    grant_on_link(server, hop.server, slot);
    count_event();
}

void Core::start_exchange(uint32_t slot, const Definition& definition) {
    const RoundTrip& trip = trips_[definition.route];
    if (trip.gate == kNone) {
        for (uint32_t left = definition.num_packets; left > 0; --left) {
            send_next(slot, definition, true);
        }
        return;
    }
    Gate& gate = gates_[trip.gate];
    ++gate.num_tasks;
    if (gate.island != trip.island) share_gate(gate.island);
    if (trip.island != kNone) start_home(slot, trip.island);
    gate.waiting.push_sorted({now_ps_, tasks_[slot].id, slot});
    call_gate(trip.gate, true);
    if (trip.island != kNone) plan_for(slot, trip.island);
}

void Core::send_next(uint32_t slot, const Definition& definition, bool more_follows) {
    const Task& task = tasks_[slot];
    const RoundTrip& trip = trips_[definition.route];
    const int64_t place = progress_[slot].packets_sent++;
    Event packet{};
    packet.exchanged = 1;
    packet.id = task.id + place;
    packet.subject = slot;
    packet.num_bytes = trip.writes ? part_of(task, definition, place).num_bytes : flit_bytes_;
    packet.island = trip.island;
    enter(packet, trip.out);
    set_out(queue_.add(packet), more_follows);
}

// A packet in front of the first server of a route.
void Core::enter(Event& packet, uint32_t route_number) {
    Route& route = routes_[route_number];
    ++route.packets_in;
    route.bytes_in += packet.num_bytes;
    packet.time_ps = packet.tail_in_ps = now_ps_;
    packet.flits = static_cast<uint32_t>((packet.num_bytes - 1) / flit_bytes_ + 1);
    packet.hop = route.first_hop;
    packet.route = route_number;
}

// A packet of an exchange is there: its answer sets out, or first crosses what is inside.
void Core::turn(uint32_t slot) {
    Event& packet = queue_[slot];
    const Task& task = tasks_[packet.subject];
    const Definition& definition = *task.definition;
    const RoundTrip& trip = trips_[definition.route];
    const int64_t place = packet.id - task.id;
    if (trip.inside != kNone && packet.route == trip.out) {
        packet.num_bytes = part_of(task, definition, place).num_bytes;
        enter(packet, trip.inside);
        return set_out(slot, false);
    }
    if (packet.island == kNone && definition.served_effect != kNoEffect &&
        ++progress_[packet.subject].packets_served == definition.num_packets) {
        effects_.emplace_back(now_ps_, definition.served_effect);
    }
    packet.exchanged = 0;
    packet.returning = 1;
    packet.num_bytes = trip.writes ? flit_bytes_ : part_of(task, definition, place).num_bytes;
    enter(packet, trip.back);
    set_out(slot, false);
}

// The answer is there: another packet may set out, and with the last one the exchange ends.
void Core::come_back(uint32_t packet_slot) {
    const uint32_t slot = queue_[packet_slot].subject;
    queue_.remove(packet_slot);
    const bool is_last = --tasks_[slot].packets_left == 0;
    const uint32_t gate = trips_[tasks_[slot].definition->route].gate;
    if (gate != kNone) {
        ++gates_[gate].room;
        if (!gates_[gate].waiting.empty()) call_gate(gate, is_last);
    }
    if (is_last) complete(slot);
}

// After all that starts at this instant, so that the order of starts decides nothing.
void Core::call_gate(uint32_t number, bool more_follows) {
    Gate& gate = gates_[number];
    if (gate.is_due) return;
    Event event{};
    event.time_ps = now_ps_;
    event.rank = kCompletePhase << kPhaseShift | kGateRank;
    event.id = number;
    event.subject = number;
    event.island = gate.island;
    if (!more_follows && is_next(event)) {  // it need not wait in a queue
        note_current(event);
        let_in(number);
        return count_event();
    }
    gate.is_due = true;
    push(event);
}

void Core::let_in(uint32_t number) {
    Gate& gate = gates_[number];
    gate.is_due = false;
    for (; gate.room > 0 && !gate.waiting.empty(); --gate.room) {
        const uint32_t slot = gate.waiting.front().packet;
        const Definition& definition = *tasks_[slot].definition;
        const bool is_last = progress_[slot].packets_sent + 1 == definition.num_packets;
        if (is_last) gate.waiting.pop_front();
        send_next(slot, definition, gate.room > 1 && !gate.waiting.empty());
    }
}

void Core::complete(uint32_t slot) {
    Task& task = tasks_[slot];
    Submission& submission = submissions_[task.submission];
    const Graph& graph = *submission.graph;
    const Definition& definition = *std::exchange(task.definition, nullptr);
    --num_live_;
    if (definition.kind == Kind::kExchange) leave_gate(slot, trips_[definition.route]);
    if (definition.extra != kNone) tell(graph, graph.extras[definition.extra]);
    for (uint32_t edge = definition.dependents.first; edge < definition.dependents.last; ++edge) {
        release(submission.first_task + graph.dependents[edge]);
    }
    for (uint32_t link = task.followers; link != kNone;) {
        const Follower follower = followers_[link];
        followers_.remove(link);
        release(follower.task);
        link = follower.next;
    }
    if (task.performed) wake(~(task.id >> kOwnerShift));
    if (task.watched) wake(task.id);
    if (--submission.num_live == 0) retire(task.submission);
}

void Core::tell(const Graph& graph, const Extra& extra) {
    if (extra.effect != kNoEffect) effects_.emplace_back(now_ps_, extra.effect);
    for (uint32_t index = extra.raises.first; index < extra.raises.last; ++index) {
        raise(graph.signals[index].signal, graph.signals[index].amount);
    }
}

// The run ends with the completions of this instant.
void Core::wake(int64_t who) {
    wakes_.push_back(who);
    limit_ps_ = static_cast<uint64_t>(now_ps_);
}

// Forget a finished submission; its owner's list is tidied when half of it is finished.
void Core::retire(uint32_t slot) {
    tasks_.remove(submissions_[slot].first_task, submissions_[slot].num_tasks());
    submissions_[slot].graph->has_ended = true;
    Owner& owner = *submissions_[slot].owner;
    const bool is_over = ++owner.num_finished == owner.submissions.size() && owner.has_ended;
    if (2 * owner.num_finished <= owner.submissions.size()) return;
    const int64_t owner_number = submissions_[slot].first_id >> kOwnerShift;
    auto is_finished = [this](uint32_t other) {
        if (submissions_[other].num_live > 0) return false;
        Submission& finished = submissions_[other];
        if (finished.graph.use_count() == 1 && finished.num_tasks() <= kMaxSpareTasks &&
            spare_graphs_.size() < kMaxSpareGraphs) {
            spare_graphs_.push_back(std::move(finished.graph));
        }
        finished.graph.reset();
        submissions_.remove(other);
        return true;
    };
    std::erase_if(owner.submissions, is_finished);
    owner.num_finished = 0;
    if (is_over) owners_.forget(owner_number);
}

void Core::end_owner(int64_t number) {
    check_outside();
    owners_.end(number);
}

int64_t Core::performed_task(int64_t number) {
    const Owner* owner = owners_.find(number);
    return owner == nullptr || owner->has_ended ? -1 : owner->performed_id;
}

void Core::raise(uint32_t index, int64_t amount) {
    Signal& signal = signals_[index];
    int64_t value;
    if (__builtin_add_overflow(signal.value, amount, &value)) {
        raise_fault(Fault::kSignalLimit, index, amount);
    }
    signal.value = value;
    while (!signal.waiters.empty() && signal.waiters.top().threshold <= signal.value) {
        const uint32_t task = signal.waiters.top().task;
        signal.waiters.pop();
        release(task);
    }
}

void Core::raise_signal(uint32_t signal, int64_t amount) {
    check_outside();
    raise(signal, amount);
}

bool Core::watch(int64_t task_id) {
    const uint32_t task = find_live(task_id);
    if (task == kNone) return false;
    tasks_[task].watched = true;
    look_out_for(task);
    return true;
}

// The task with this id, or kNone if it is complete; a fault if it was never submitted.
uint32_t Core::find_live(int64_t task_id) {
    const uint32_t task = find_task(task_id);
    if (task == kNone || islands_.empty()) return task;
    touch_island_of(task);
    return find_task(task_id);
}

uint32_t Core::find_task(int64_t task_id) {
    const Owner* owner = owners_.find(task_id >> kOwnerShift);
    if (owner == nullptr) return kNone;
    if ((task_id & kSequenceMask) >= owner->next_sequence && !owner->has_ended) {
        raise_fault(Fault::kUnknownTask, task_id);
    }
    const auto& submissions = owner->submissions;
    auto place = std::upper_bound(
        submissions.begin(), submissions.end(), task_id,
        [this](int64_t id, uint32_t slot) { return id < submissions_[slot].first_id; });
    if (place == submissions.begin()) return kNone;
    const Submission& submission = submissions_[*--place];
    if (submission.num_live == 0) return kNone;
    const auto& offsets = submission.graph->offsets;
    const int64_t offset = task_id - submission.first_id;
    const auto row = std::lower_bound(offsets.begin(), offsets.end(), offset);
    if (row == offsets.end() || *row != offset) return kNone;
    const auto task = submission.first_task + static_cast<uint32_t>(row - offsets.begin());
    return tasks_[task].is_live() ? task : kNone;
}

Part Core::part_of(const Task& task, const Definition& definition, int64_t place) const {
    if (definition.cut == kNone) [[likely]] {
        const int64_t before = place * packet_bytes_;
        return {before, std::min(definition.amount - before, packet_bytes_)};
    }
    const Cut& cut = submissions_[task.submission].graph->cuts[definition.cut];
    if (cut.segment_packets == 1) return {place * cut.stride_bytes, cut.segment_bytes};
    const int64_t before = place % cut.segment_packets * packet_bytes_;
    const int64_t segment = place / cut.segment_packets;
    return {segment * cut.stride_bytes + before,
            std::min(cut.segment_bytes - before, packet_bytes_)};
}

}  // namespace tilewright
