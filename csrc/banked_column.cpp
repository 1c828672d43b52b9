// Column commands of one channel of a banked memory: runs, and what they cost and count.
#include "banked_channel.hpp"

namespace tilewright {

// Instants at which no refresh is due and no turn is wanted, one after the other. What a decision
// does besides would find nothing to do; at the first that is not so, it decides.
void MemoryChannel::stream(int64_t until_ps, std::vector<Completion>& finished) {
    do {
        const int64_t now_ps = event_ps_;
        decided_ps_ = now_ps;
        give_row_commands(now_ps);
        const int64_t num_bursts = issue(now_ps, finished);
        if (!is_steady()) {
            if (num_bursts != 1) event_ps_ = std::max(now_ps, next_event_ps(now_ps));
            return;  // after a single burst the instant goes on
        }
        if (!is_row_event_known_) find_row_event();
        const int64_t before_ps = std::min(due_ps_, row_event_ps_);
        event_ps_ = std::max(now_ps, next_column_ps(now_ps, before_ps));
    } while (event_ps_ <= until_ps && event_ps_ < due_ps_);
}

int64_t MemoryChannel::issue(int64_t now_ps, std::vector<Completion>& finished) {
    if (floor_ps() > now_ps) return 0;
    uint32_t place = std::exchange(next_place_, kNone);
    if (bus_ps() == now_ps && goes_on_with_streak()) {
        const int64_t num_bursts = prolong_streak(now_ps, finished);
        if (num_bursts > 0) return num_bursts;
    }
    tell_banks();
    if (place == kNone) place = ready_place(now_ps);
    return place == kNone ? 0 : serve(place, now_ps, finished);
}

// Of the oldest chunk whose next burst may go.
uint32_t MemoryChannel::ready_place(int64_t now_ps) const {
    const AgeOrder& order = queues_[direction_].order;
    const uint32_t size = order.size();
    for (uint32_t place = 0; place < size; ++place) {
        const MemoryChunk& chunk = chunks_[order[place]];
        if (is_eligible(chunk) && column_ps(chunk) <= now_ps) return place;
    }
    return kNone;
}

// A run: the bursts of a chunk that follow each other at the bus's pace, with nothing that could
// come in between.
int64_t MemoryChannel::serve(uint32_t place, int64_t start_ps, std::vector<Completion>& finished) {
    MemoryChunk& chunk = chunks_[queues_[direction_].order[place]];
    uint64_t contested = 0;
    int64_t until_ps = due_ps_;
    if (place > 0) until_ps = std::min(until_ps, overtaken_ps(place, start_ps, contested));
    const int64_t most = most_bursts(chunk, start_ps, until_ps);
    const int64_t num_bursts = follow(chunk, start_ps, most, contested);
    if (bus_ps() != start_ps) count_gap(chunk, start_ps);
    note_run(start_ps, num_bursts);
    const uint32_t last = chunk.next() + static_cast<uint32_t>(num_bursts) - 1;
    use_banks(last, num_bursts);
    const bool is_whole = num_bursts == chunk.num_bursts && chunk.pattern != kNone;
    streak_pattern_ = is_whole ? chunk.pattern : kNoStreak;
    streak_row_ = chunk.row;
    streak_last_ = last;
    chunk.pattern = kNone;
    num_begun_ -= chunk.is_begun();
    chunk.issued = static_cast<uint16_t>(chunk.issued + num_bursts);
    if (chunk.issued < chunk.num_bursts) {
        ++num_begun_;
    } else {
        finish(chunk, start_ps, finished);
    }
    settle_queue(place, num_bursts);
    return num_bursts;
}

void MemoryChannel::note_run(int64_t start_ps, int64_t num_bursts) {
    num_bursts_[direction_] += num_bursts;
    ++num_runs_;
    issued_ps_ = start_ps + (num_bursts - 1) * shape_.pace;
    data_end_ps_ = issued_ps_ + shape_.data_end[direction_];
    if (!direction_) read_ps_ = issued_ps_;
    last_direction_ = run_direction_ = direction_;
    run_start_ps_ = start_ps;
    run_bursts_ = num_bursts;
}

// The oldest chunk goes where the last one went, as soon as the bus is free. If all of it can, it
// changes times and counts only, until one of another kind is the oldest; else it serves none.
int64_t MemoryChannel::prolong_streak(int64_t start_ps, std::vector<Completion>& finished) {
    Queue& queue = queues_[direction_];
    const uint32_t slot = queue.order[0];
    const MemoryChunk& chunk = chunks_[slot];
    const int64_t num_bursts = chunk.num_bursts;
    if (most_bursts(chunk, start_ps, due_ps_) < num_bursts) return 0;
    note_run(start_ps, num_bursts);
    is_run_untold_ = true;
    finish(chunk, start_ps, finished);
    queue.bursts -= num_bursts;
    queue.order.erase(0);
    chunks_.remove(slot);
    if (!goes_on_with_streak()) find_heads(chunk.left);
    return num_bursts;
}

// Bursts of a chunk before some time, as far as they can go at the pace and no drain can end.
int64_t MemoryChannel::most_bursts(const MemoryChunk& chunk, int64_t start_ps,
                                   int64_t until_ps) const {
    int64_t most = std::min<int64_t>(chunk.num_bursts - chunk.issued, shape_.paced[chunk.next()]);
    if (direction_) {
        most = std::min(most, shape_.drain_high - shape_.drain_low);
        if (is_draining_) most = std::min(most, queues_[1].bursts - shape_.drain_low);
    }
    if (start_ps + (most - 1) * shape_.pace < until_ps) return most;
    return until_ps <= start_ps ? 1 : (until_ps - start_ps - 1) / shape_.pace + 1;
}

// Before that no older chunk can issue a burst, whatever happens; contested gets the banks that an
// older chunk wants for another row.
int64_t MemoryChannel::overtaken_ps(uint32_t place, int64_t start_ps, uint64_t& contested) const {
    int64_t found_ps = kNeverPs;
    uint64_t decided = 0;
    const AgeOrder& order = queues_[direction_].order;
    const int64_t row = chunks_[order[place]].row;
    for (uint32_t at = 0; at < place; ++at) {
        const MemoryChunk& older = chunks_[order[at]];
        const int64_t ready_ps = column_ps(older);
        found_ps = std::min(
            found_ps, ready_ps == kNeverPs ? start_ps + shape_.rcd[direction_] : ready_ps);
        if (older.row != row) contested |= older.left & ~decided;
        decided |= older.left;
    }
    return found_ps;
}

// The first burst may go; the others need a look where a bank comes up for the first time. Among
// themselves they keep their distances (paced). In a contested bank only the first burst goes.
int64_t MemoryChannel::follow(const MemoryChunk& chunk, int64_t start_ps, int64_t limit,
                              uint64_t contested) const {
    if (contested) {
        int64_t count = 1;
        while (count < limit && !(contested & bit(shape_.bank_of[chunk.next() + count]))) ++count;
        limit = count;
    }
    for (const BankUse* use = shape_.uses_from(chunk.next()) + 1; use->offset < limit; ++use) {
        const Bank& bank = banks_[use->bank];
        const int64_t at_ps = start_ps + use->offset * shape_.pace;
        if (bank.open_row != chunk.row || ready_ps(bank, use->group) > at_ps) return use->offset;
    }
    return limit;
}

void MemoryChannel::tell_run() {
    is_run_untold_ = false;
    use_banks(streak_last_, run_bursts_);
}

// The last run, by its last burst.
inline void MemoryChannel::use_banks(uint32_t last, int64_t num_bursts) {
    const int64_t pace = shape_.pace, close_ps = shape_.close[direction_];
    uint64_t used = 0;
    for (const BankUse* use = shape_.uses_back_from(last); use->offset < num_bursts; ++use) {
        const int64_t at_ps = issued_ps_ - use->offset * pace;
        Bank& bank = banks_[use->bank];
        bank.precharge_ps = std::max(bank.precharge_ps, at_ps + close_ps);
        if (bank.opening != Opening::kUsed) note_opening(bank);
        use_group(use->group, at_ps);
        used |= bit(use->bank);
    }
    if (to_precharge_ & used) is_row_event_known_ = false;
}

void MemoryChannel::note_opening(Bank& bank) {
    ++(bank.opening == Opening::kClosed ? tally_.row_closed : tally_.row_conflicts);
    bank.opening = Opening::kUsed;
    ++bank.num_openings;
}

// at_ps is the last column command of a run in one of the group's banks, in any order.
void MemoryChannel::use_group(int own, int64_t at_ps) {
    Group& used = groups_[own];
    if (direction_) used.write_ps = std::max(used.write_ps, at_ps);
    if (shape_.is_least_apart) {
        used.spacing_ps = std::max(used.spacing_ps, at_ps + shape_.timing.ccd_l);
        return;
    }
    const int64_t* ccd = shape_.ccd.data() + own * shape_.num_groups;
    for (Group& group : groups_) {
        group.spacing_ps = std::max(group.spacing_ps, at_ps + *ccd++);
    }
}

// Deals the time that the data bus stood still before a burst out to its causes.
void MemoryChannel::count_gap(const MemoryChunk& chunk, int64_t start_ps) {
    const int bank = shape_.bank_of[chunk.next()];
    const int64_t could_ps = bus_ps();
    const int64_t from_ps = std::max(could_ps, std::min(start_ps, accesses_[chunk.access].accepted_ps));
    tally_.idle_ps += from_ps - could_ps;
    const Window& last = window(bank);
    const int64_t refresh_ps =
        std::max<int64_t>(0, last.end_ps - std::max(last.start_ps, from_ps));
    tally_.refresh_ps += refresh_ps;
    const int64_t rest_ps = start_ps - from_ps - refresh_ps;
    const Group& group = groups_[shape_.group_of[bank]];
    const bool is_turned = last_direction_ >= 0 && last_direction_ != direction_;
    const int64_t bound_ps = is_turned ? group.turn_ps : spaced_ps(group);
    const int64_t columns_ps = std::min(rest_ps, std::max<int64_t>(0, bound_ps - from_ps));
    (is_turned ? tally_.turnaround_ps : tally_.bank_group_ps) += columns_ps;
    tally_.row_ps += rest_ps - columns_ps;
}

// Takes what a run has issued out of the queue; other chunks may now decide rows.
void MemoryChannel::settle_queue(uint32_t place, int64_t num_bursts) {
    Queue& queue = queues_[direction_];
    const uint32_t slot = queue.order[place];
    MemoryChunk& chunk = chunks_[slot];
    queue.bursts -= num_bursts;
    if (chunk.issued < chunk.num_bursts) {
        const uint64_t left = shape_.banks_between(chunk.next(), chunk.first + chunk.num_bursts);
        const uint64_t gone = chunk.left & ~left;
        chunk.left = left;
        if (gone) find_heads(gone);
        return;
    }
    queue.order.erase(place);
    chunks_.remove(slot);
    if (place == 0 && queue.order.size() > 0) {
        const MemoryChunk& next = chunks_[queue.order[0]];
        const bool is_same = next.row == chunk.row && (chunk.left & ~next.left) == 0;
        if (is_same && is_eligible(next)) return;  // it decides as the last one did
    }
    find_heads(chunk.left);
}

void MemoryChannel::finish(const MemoryChunk& chunk, int64_t now_ps,
                           std::vector<Completion>& finished) {
    MemoryAccess& access = accesses_[chunk.access];
    Completion& found = access.completion;
    const bool is_last = data_end_ps_ > found.done_ps || (data_end_ps_ == found.done_ps &&
                                                          chunk.position < access.last_position);
    if (is_last) {
        found.done_ps = data_end_ps_;
        found.refresh_ps = blocked_ps(last_bank(chunk), issued_ps_) - chunk.blocked_ps;
        access.last_position = chunk.position;
    }
    found.decided_ps = std::max(found.decided_ps, now_ps);
    access.chunks_left -= num_members_;
    if (access.chunks_left > 0) return;
    finished.push_back(found);
    accesses_.remove(chunk.access);
}

}  // namespace tilewright
