// One channel of a banked memory: queues, direction, rows, runs of column commands.
#include "banked.hpp"

#include <algorithm>

namespace tilewright {

namespace {

uint64_t bit(int bank) { return uint64_t{1} << bank; }

// The lowest bank of a set, which is then without it.
int take_bank(uint64_t& banks) {
    const int bank = std::countr_zero(banks);
    banks &= banks - 1;
    return bank;
}

}  // namespace

MemoryChannel::MemoryChannel(const MemoryShape& shape, std::vector<MemoryAccess>& accesses)
    : shape_(shape),
      accesses_(accesses),
      banks_(shape.num_banks),
      groups_(shape.num_groups),
      windows_(std::max<int64_t>(1, shape.refresh_turns)) {
    due_ps_ = refresh_due_ps();
}

// --- the door

int64_t MemoryChannel::waiting(int direction, int64_t until_ps) const {
    int64_t going = 0;
    if (run_direction_ == direction && run_start_ps_ + run_bursts_ * shape_.pace > until_ps) {
        going = run_bursts_;
        if (until_ps >= run_start_ps_) going -= (until_ps - run_start_ps_) / shape_.pace + 1;
    }
    return queues_[direction].bursts + going;
}

bool MemoryChannel::has_room(int direction, int64_t capacity, int64_t num_bursts,
                             int64_t until_ps) const {
    const int64_t most = queues_[direction].bursts + run_bursts_;  // nothing of the run issued
    return most + num_bursts <= capacity || waiting(direction, until_ps) + num_bursts <= capacity;
}

int64_t MemoryChannel::room_ps(int direction, int64_t num_bursts, int64_t now_ps) const {
    const int64_t queued = queues_[direction].bursts;
    const int64_t capacity = shape_.capacity[direction];
    if (queued + num_bursts > capacity) return -1;
    const int64_t going = waiting(direction, now_ps) - queued;
    const int64_t surplus = queued + going + num_bursts - capacity;
    if (surplus <= 0) return now_ps;
    return run_start_ps_ + (run_bursts_ - going + surplus - 1) * shape_.pace;
}

void MemoryChannel::accept(int direction, const MemoryChunk& chunk, int64_t now_ps,
                           int64_t until_ps) {
    refresh_until(now_ps);
    Queue& queue = queues_[direction];
    const uint32_t slot = add_chunk(chunk);
    MemoryChunk& added = chunks_[slot];
    added.left = shape_.banks_between(added.first, added.first + added.num_bursts);
    queue.banks |= added.left;
    for (uint64_t banks = added.left; banks;) ++queue.demands[take_bank(banks)];
    queue.bursts += added.num_bursts;
    added.blocked_ps = blocked_ps(last_bank(added), now_ps);

    uint32_t place = queue.order.size();
    while (place > 0 && added.is_older(chunks_[queue.order[place - 1]])) --place;
    const bool is_youngest = place == queue.order.size();
    queue.order.insert(place, slot);
    if (direction == direction_ && !is_closing_) {
        if (is_youngest) {
            set_head(added.left & ~wanted_, slot);
        } else {
            find_heads(added.left);
        }
    }
    if (direction && !has_room(1, shape_.drain_high, 1, until_ps)) is_draining_ = true;
    event_ps_ = now_ps;
}

uint32_t MemoryChannel::add_chunk(const MemoryChunk& chunk) {
    if (free_chunks_.empty()) {
        chunks_.push_back(chunk);
        return static_cast<uint32_t>(chunks_.size() - 1);
    }
    const uint32_t slot = free_chunks_.back();
    free_chunks_.pop_back();
    chunks_[slot] = chunk;
    return slot;
}

// --- an instant

void MemoryChannel::advance(int64_t now_ps, std::vector<uint32_t>& finished) {
    while (event_ps_ <= now_ps) {
        const int64_t at_ps = event_ps_;
        if (run_bursts_ > 1 && issued_ps_ == at_ps && decided_ps_ < at_ps) end_run(at_ps);
        decided_ps_ = at_ps;
        do {
            refresh_until(at_ps);
            turn(at_ps >= issued_ps_);
            give_row_commands(at_ps);
        } while (issue(at_ps, finished));
        event_ps_ = std::max(at_ps, next_event_ps(at_ps));
    }
}

// The last burst of a run goes at this instant: after the row commands, and a turn after it.
void MemoryChannel::end_run(int64_t now_ps) {
    turn(false);
    give_row_commands(now_ps);
}

int64_t MemoryChannel::next_event_ps(int64_t now_ps) {
    const Queue& queue = queues_[direction_];
    if (!is_row_event_known_) find_row_event();
    int64_t found_ps = row_event_ps_;
    if (queues_[0].bursts + queues_[1].bursts > 0) found_ps = std::min(found_ps, due_ps_);
    if ((is_draining_ && queues_[1].bursts <= shape_.drain_low) || wants_turn()) {
        found_ps = std::min(found_ps, issued_ps_);
    }
    const int64_t enough_ps = std::max(now_ps, floor_ps());  // nothing goes before that
    const uint32_t size = queue.order.size();
    for (uint32_t place = 0; place < size && found_ps > enough_ps; ++place) {
        const MemoryChunk& chunk = chunks_[queue.order[place]];
        if (is_eligible(chunk)) found_ps = std::min(found_ps, column_ps(chunk));
    }
    return found_ps;
}

// --- direction

void MemoryChannel::turn(bool may_turn) {
    bool has_turned = false;
    if (may_turn) {  // not inside a run, which is never cut by a turn
        if (queues_[1].bursts <= shape_.drain_low) is_draining_ = false;
        has_turned = wants_turn();
    }
    if (has_turned) {
        direction_ = 1 - direction_;
        for (Group& group : groups_) {
            group.turn_ps = direction_ ? read_ps_ + shape_.timing.rtw : after_writes_ps(group);
        }
    }
    const bool closing = is_closing();
    if (has_turned || closing != is_closing_) {
        is_closing_ = closing;
        find_heads(~uint64_t{0});
    }
}

// A read in a group: WTR after the end of every group's last write.
int64_t MemoryChannel::after_writes_ps(const Group& own) const {
    int64_t found_ps = kLongAgoPs;
    for (const Group& group : groups_) {
        const int64_t wtr_ps = &group == &own ? shape_.timing.wtr_l : shape_.timing.wtr_s;
        found_ps = std::max(found_ps, group.write_ps + shape_.data_end[1] + wtr_ps);
    }
    return found_ps;
}

bool MemoryChannel::wants_turn() const {
    if (num_begun_) return false;
    if (direction_) return queues_[0].bursts > 0 && !is_draining_;
    return queues_[1].bursts > 0 && (is_draining_ || queues_[0].bursts == 0);
}

bool MemoryChannel::is_closing() const {
    return direction_ ? queues_[0].bursts > 0 && !is_draining_ : is_draining_;
}

// --- rows

void MemoryChannel::give_row_commands(int64_t now_ps) {
    if (is_row_event_known_ && row_event_ps_ > now_ps) return;
    if (to_precharge_) precharge(now_ps);
    if (to_activate_) activate(now_ps);
    is_row_event_known_ = false;
}

void MemoryChannel::find_row_event() {
    row_event_ps_ = kNeverPs;
    for (uint64_t banks = to_precharge_; banks;) {
        row_event_ps_ = std::min(row_event_ps_, banks_[take_bank(banks)].precharge_ps);
    }
    for (uint64_t banks = to_activate_; banks;) {
        row_event_ps_ = std::min(row_event_ps_, activate_ps(take_bank(banks)));
    }
    is_row_event_known_ = true;
}

// Finds again who decides the rows of some banks.
void MemoryChannel::find_heads(uint64_t banks) {
    if ((to_precharge_ | to_activate_) & banks) is_row_event_known_ = false;
    wanted_ &= ~banks;
    to_precharge_ &= ~banks;
    to_activate_ &= ~banks;
    const Queue& queue = queues_[direction_];
    banks &= queue.banks;
    const uint32_t size = queue.order.size();
    for (uint32_t place = 0; place < size && banks; ++place) {
        const uint32_t slot = queue.order[place];
        const uint64_t found = chunks_[slot].left & banks;
        if (!found || !is_eligible(chunks_[slot])) continue;
        banks &= ~found;
        set_head(found, slot);
    }
}

void MemoryChannel::set_head(uint64_t banks, uint32_t slot) {
    wanted_ |= banks;
    const int64_t row = chunks_[slot].row;
    while (banks) {
        const int index = take_bank(banks);
        Bank& bank = banks_[index];
        bank.wanted_row = row;
        bank.head = slot;
        if (bank.open_row == row) continue;
        (bank.open_row == kClosed ? to_activate_ : to_precharge_) |= bit(index);
        is_row_event_known_ = false;
    }
}

void MemoryChannel::precharge(int64_t now_ps) {
    for (uint64_t banks = to_precharge_; banks;) {
        const int index = take_bank(banks);
        Bank& bank = banks_[index];
        if (bank.precharge_ps > now_ps) continue;
        bank.open_row = kClosed;
        bank.idle_ps = now_ps + shape_.timing.rp;
        bank.opening = Opening::kConflict;
        to_precharge_ &= ~bit(index);
        to_activate_ |= bit(index);
    }
}

int64_t MemoryChannel::activate_ps(int bank) const {
    const int64_t own_ps =
        std::max(banks_[bank].idle_ps, banks_[bank].activated_ps + shape_.timing.rc);
    const int64_t others_ps = std::max(groups_[shape_.group_of[bank]].activate_ps,
                                       activates_ps_[oldest_activate_] + shape_.timing.faw);
    return std::max(own_ps, others_ps);
}

// If the head of a bank is older than that of another; bursts of one chunk by their place.
bool MemoryChannel::goes_before(int bank, int other) const {
    if (banks_[bank].head != banks_[other].head) {
        return chunks_[banks_[bank].head].is_older(chunks_[banks_[other].head]);
    }
    uint32_t burst = chunks_[banks_[bank].head].next();
    while (shape_.bank_of[burst] != bank && shape_.bank_of[burst] != other) ++burst;
    return shape_.bank_of[burst] == bank;
}

void MemoryChannel::activate(int64_t now_ps) {
    for (;;) {
        int chosen = -1;
        for (uint64_t banks = to_activate_; banks;) {
            const int bank = take_bank(banks);
            if (activate_ps(bank) > now_ps) continue;
            if (chosen < 0 || goes_before(bank, chosen)) chosen = bank;
        }
        if (chosen < 0) return;
        Bank& bank = banks_[chosen];
        bank.open_row = bank.wanted_row;
        bank.activated_ps = now_ps;
        bank.precharge_ps = now_ps + shape_.timing.ras;
        const int own = shape_.group_of[chosen];
        for (int group = 0; group < shape_.num_groups; ++group) {
            const int64_t rrd_ps = group == own ? shape_.timing.rrd_l : shape_.timing.rrd_s;
            int64_t& ready_ps = groups_[group].activate_ps;
            ready_ps = std::max(ready_ps, now_ps + rrd_ps);
        }
        activates_ps_[oldest_activate_] = now_ps;
        oldest_activate_ = (oldest_activate_ + 1) % 4;
        to_activate_ &= ~bit(chosen);
    }
}

// --- columns

// No column command of the current direction goes before that.
int64_t MemoryChannel::floor_ps() const {
    return std::max(issued_ps_ + shape_.least_ccd, bus_ps());
}

// When the next burst of a chunk may go; kNeverPs while its row is not open.
int64_t MemoryChannel::column_ps(const MemoryChunk& chunk) const {
    const int index = shape_.bank_of[chunk.next()];
    const Bank& bank = banks_[index];
    if (bank.open_row != chunk.row) return kNeverPs;
    return std::max(bus_ps(), ready_ps(bank, index));
}

// When a column command may go to the open row of a bank, but for the data bus.
int64_t MemoryChannel::ready_ps(const Bank& bank, int index) const {
    const Group& group = groups_[shape_.group_of[index]];
    return std::max(bank.activated_ps + shape_.rcd[direction_],
                    std::max(group.spacing_ps, group.turn_ps));
}

bool MemoryChannel::issue(int64_t now_ps, std::vector<uint32_t>& finished) {
    if (floor_ps() > now_ps) return false;
    const AgeOrder& order = queues_[direction_].order;
    const uint32_t size = order.size();
    for (uint32_t place = 0; place < size; ++place) {
        MemoryChunk& chunk = chunks_[order[place]];
        if (!is_eligible(chunk) || column_ps(chunk) > now_ps) continue;
        const int64_t num_bursts = run_length(chunk, place, now_ps);
        num_begun_ -= chunk.is_begun();
        serve(chunk, now_ps, num_bursts);
        num_begun_ += chunk.is_begun();
        if (chunk.issued == chunk.num_bursts) finish(chunk, finished);
        settle_demands(place, num_bursts);
        return num_bursts == 1;  // inside a run nothing else follows at once
    }
    return false;
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
    const int64_t* ccd = shape_.ccd.data() + own * shape_.num_groups;
    for (Group& group : groups_) group.spacing_ps = std::max(group.spacing_ps, at_ps + *ccd++);
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
    const int64_t bound_ps = is_turned ? group.turn_ps : group.spacing_ps;
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
    chunk.left = left;
    for (uint64_t banks = gone; banks;) {
        const int bank = take_bank(banks);
        if (--queue.demands[bank] == 0) queue.banks &= ~bit(bank);
    }
    if (chunk.issued == chunk.num_bursts) {
        queue.order.erase(place);
        free_chunks_.push_back(slot);
    }
    find_heads(gone);
}

void MemoryChannel::finish(const MemoryChunk& chunk, std::vector<uint32_t>& finished) {
    const int64_t refresh_ps = blocked_ps(last_bank(chunk), issued_ps_) - chunk.blocked_ps;
    MemoryAccess& access = accesses_[chunk.access];
    const bool is_last = data_end_ps_ > access.done_ps || (data_end_ps_ == access.done_ps &&
                                                           chunk.position < access.last_position);
    if (is_last) {
        access.done_ps = data_end_ps_;
        access.refresh_ps = refresh_ps;
        access.last_position = chunk.position;
    }
    if (--access.chunks_left == 0) finished.push_back(chunk.access);
}

// --- counters

std::vector<int64_t> MemoryChannel::counters() const {
    return {tally_.bursts[0],     tally_.bursts[1],      tally_.row_hits, tally_.row_closed,
            tally_.row_conflicts, tally_.busy_ps,        tally_.idle_ps,  tally_.refresh_ps,
            tally_.turnaround_ps, tally_.bank_group_ps,  tally_.row_ps,   data_end_ps_};
}

}  // namespace tilewright
