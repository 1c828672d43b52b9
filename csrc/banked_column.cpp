// Column commands of one channel of a banked memory: runs, and what they cost and count.
#include "banked_channel.hpp"

namespace tilewright {

// Instants at which nothing but a column command can be due, one after the other. What a decision
// does besides would find nothing to do; at the first that is not so, it decides.
void MemoryChannel::stream(int64_t until_ps, std::vector<uint32_t>& finished) {
    row_event_ps_ = kNeverPs;
    is_row_event_known_ = true;
    do {
        const int64_t now_ps = event_ps_;
        decided_ps_ = now_ps;
        const int64_t num_bursts = issue(now_ps, finished);
        if (!is_streaming()) {
            if (num_bursts != 1) event_ps_ = std::max(now_ps, next_event_ps(now_ps));
            return;  // after a single burst the instant goes on
        }
        event_ps_ = std::max(now_ps, next_column_ps(now_ps, due_ps_));
    } while (event_ps_ <= until_ps && event_ps_ < due_ps_);
}

int64_t MemoryChannel::issue(int64_t now_ps, std::vector<uint32_t>& finished) {
    if (floor_ps() > now_ps) return 0;
    const AgeOrder& order = queues_[direction_].order;
    const uint32_t size = order.size();
    for (uint32_t place = 0; place < size; ++place) {
        MemoryChunk& chunk = chunks_[order[place]];
        if (!is_eligible(chunk) || column_ps(chunk) > now_ps) continue;
        const int64_t num_bursts = run_length(chunk, place, now_ps);
        num_begun_ -= chunk.is_begun();
        serve(chunk, now_ps, num_bursts);
        num_begun_ += chunk.is_begun();
        if (chunk.issued == chunk.num_bursts) finish(chunk, now_ps, finished);
        settle_demands(place, num_bursts);
        return num_bursts;
    }
    return 0;
}

// How many bursts follow each other at the bus's pace with nothing that could come in between.
int64_t MemoryChannel::run_length(const MemoryChunk& chunk, uint32_t place,
                                  int64_t start_ps) const {
    int64_t limit = std::min<int64_t>(chunk.num_bursts - chunk.issued, shape_.paced[chunk.next()]);
    if (direction_) {  // a run ends where the end of a drain could be due
        limit = std::min(limit, shape_.drain_high - shape_.drain_low);
        if (is_draining_) limit = std::min(limit, queues_[1].bursts - shape_.drain_low);
    }
    if (limit <= 1) return 1;
    uint64_t contested = 0;
    int64_t until_ps = due_ps_;
    if (place > 0) until_ps = std::min(until_ps, overtaken_ps(place, start_ps, contested));
    if (start_ps + (limit - 1) * shape_.pace >= until_ps) {
        limit = until_ps <= start_ps ? 1 : (until_ps - start_ps - 1) / shape_.pace + 1;
    }
    return follow(chunk, start_ps, limit, contested);
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
// themselves they keep their distances (paced).
int64_t MemoryChannel::follow(const MemoryChunk& chunk, int64_t start_ps, int64_t limit,
                              uint64_t contested) const {
    const uint32_t first = chunk.next();
    uint64_t seen = bit(shape_.bank_of[first]);
    for (int64_t count = 1; count < limit && (contested || seen != chunk.left); ++count) {
        const int index = shape_.bank_of[first + count];
        if (contested & bit(index)) return count;
        if (seen & bit(index)) continue;
        seen |= bit(index);
        const Bank& bank = banks_[index];
        const int64_t at_ps = start_ps + count * shape_.pace;
        if (bank.open_row != chunk.row || ready_ps(bank, index) > at_ps) return count;
    }
    return limit;
}

void MemoryChannel::serve(MemoryChunk& chunk, int64_t start_ps, int64_t num_bursts) {
    const uint32_t first = chunk.next();
    count_gap(chunk, shape_.bank_of[first], start_ps);
    tally_.bursts[direction_] += num_bursts;
    tally_.busy_ps += num_bursts * shape_.timing.bl;
    tally_.bank_group_ps += (num_bursts - 1) * (shape_.pace - shape_.timing.bl);
    tally_.row_hits += num_bursts;
    const int64_t pace = shape_.pace;
    issued_ps_ = start_ps + (num_bursts - 1) * pace;
    data_end_ps_ = issued_ps_ + shape_.data_end[direction_];
    uint64_t banks = 0, groups = 0;
    // from the last burst backwards: the first sight of a bank or group is its last command
    uint32_t burst = first + static_cast<uint32_t>(num_bursts);
    for (int64_t at_ps = issued_ps_; at_ps >= start_ps && banks != chunk.left; at_ps -= pace) {
        const int index = shape_.bank_of[--burst];
        if (banks & bit(index)) continue;
        banks |= bit(index);
        use_bank(banks_[index], at_ps);
        const int group = shape_.group_of[index];
        if (!(groups & bit(group))) use_group(group, at_ps);
        groups |= bit(group);
    }
    if (to_precharge_ & banks) is_row_event_known_ = false;
    if (!direction_) read_ps_ = issued_ps_;
    last_direction_ = run_direction_ = direction_;
    run_start_ps_ = start_ps;
    run_bursts_ = num_bursts;
    chunk.issued = static_cast<uint16_t>(chunk.issued + num_bursts);
}

// at_ps is the last column command of a run in the bank; the first one was counted as a hit.
void MemoryChannel::use_bank(Bank& bank, int64_t at_ps) {
    bank.precharge_ps = std::max(bank.precharge_ps, at_ps + shape_.close[direction_]);
    if (bank.opening == Opening::kUsed) return;
    --tally_.row_hits;
    ++(bank.opening == Opening::kClosed ? tally_.row_closed : tally_.row_conflicts);
    bank.opening = Opening::kUsed;
}

// at_ps is the last column command of a run in the group.
void MemoryChannel::use_group(int own, int64_t at_ps) {
    if (direction_) groups_[own].write_ps = at_ps;
    if (shape_.is_least_apart) {
        groups_[own].spacing_ps = at_ps + shape_.timing.ccd_l;
        return;
    }
    const int64_t* ccd = shape_.ccd.data() + own * shape_.num_groups;
    for (Group& group : groups_) {
        const int64_t spacing_ps = at_ps + *ccd++;
        if (spacing_ps > group.spacing_ps) group.spacing_ps = spacing_ps;
    }
}

// Deals the time that the data bus stood still before a burst out to its causes.
void MemoryChannel::count_gap(const MemoryChunk& chunk, int bank, int64_t start_ps) {
    const int64_t could_ps = bus_ps();
    if (could_ps == start_ps) return;
    const int64_t from_ps = std::max(could_ps, std::min(start_ps, chunk.accepted_ps));
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
void MemoryChannel::settle_demands(uint32_t place, int64_t num_bursts) {
    Queue& queue = queues_[direction_];
    const uint32_t slot = queue.order[place];
    MemoryChunk& chunk = chunks_[slot];
    queue.bursts -= num_bursts;
    const uint64_t left = shape_.banks_between(chunk.next(), chunk.first + chunk.num_bursts);
    const uint64_t gone = chunk.left & ~left;
    if (gone == 0) return;
    chunk.left = left;
    for (uint64_t banks = gone; banks;) {
        const int bank = take_bank(banks);
        if (--banks_[bank].demands[direction_] == 0) queue.banks &= ~bit(bank);
    }
    if (chunk.issued == chunk.num_bursts) {
        queue.order.erase(place);
        free_chunks_.push_back(slot);
    }
    find_heads(gone);
}

void MemoryChannel::finish(const MemoryChunk& chunk, int64_t now_ps,
                           std::vector<uint32_t>& finished) {
    const int64_t refresh_ps = blocked_ps(last_bank(chunk), issued_ps_) - chunk.blocked_ps;
    MemoryAccess& access = accesses_[chunk.access];
    Completion& found = access.completion;
    const bool is_last = data_end_ps_ > found.done_ps || (data_end_ps_ == found.done_ps &&
                                                          chunk.position < access.last_position);
    if (is_last) {
        found.done_ps = data_end_ps_;
        found.refresh_ps = refresh_ps;
        access.last_position = chunk.position;
    }
    found.decided_ps = std::max(found.decided_ps, now_ps);
    if (--access.chunks_left == 0) finished.push_back(chunk.access);
}

}  // namespace tilewright
