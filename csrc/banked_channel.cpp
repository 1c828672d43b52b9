// One channel of a banked memory: its door, an instant of decisions, the direction.
#include "banked_channel.hpp"

namespace tilewright {

MemoryChannel::MemoryChannel(const MemoryShape& shape, Slab<MemoryAccess>& accesses,
                             uint32_t num_members)
    : shape_(shape),
      accesses_(accesses),
      num_members_(num_members),
      banks_(shape.num_banks),
      groups_(shape.num_groups),
      windows_(std::max<int64_t>(1, shape.refresh_turns)) {
    due_ps_ = refresh_due_ps();
}

std::unique_ptr<MemoryChannel> MemoryChannel::part(uint32_t num_last) {
    num_members_ -= num_last;
    auto rest = std::make_unique<MemoryChannel>(*this);
    rest->num_members_ = num_last;
    for (const Queue& queue : rest->queues_) {
        for (uint32_t place = 0; place < queue.order.size(); ++place) {
            rest->chunks_[queue.order[place]].position += num_members_;
        }
    }
    return rest;
}

// --- the door

// A queue is emptied in runs: the last one is decided burst by burst, what comes after it goes at
// the pace at best, whatever is added meanwhile.
Room MemoryChannel::room_behind(int direction, int64_t surplus) const {
    const int64_t bus_ps = data_end_ps_ - shape_.latency[direction];
    const int64_t first_ps = std::max({event_ps_, issued_ps_ + shape_.least_ccd, bus_ps});
    return {false, first_ps + (surplus - 1) * shape_.pace};
}

void MemoryChannel::accept(int direction, const MemoryChunk& chunk, int64_t now_ps,
                           int64_t until_ps) {
    const bool is_new_round = accepted_round_ != chunk.round;
    if (accepted_ps_ == now_ps && is_new_round) decided_ps_ = now_ps;  // if only to do nothing
    accepted_ps_ = now_ps;
    accepted_round_ = chunk.round;
    refresh_until(now_ps);
    Queue& queue = queues_[direction];
    const uint32_t slot = chunks_.add(chunk);
    MemoryChunk& added = chunks_[slot];
    added.blocked_ps = blocked_ps(last_bank(added), now_ps);

    uint32_t place = queue.order.size();  // it can go before others of its round, no more
    if (!is_new_round) {
        while (place > 0 && added.is_older(chunks_[queue.order[place - 1]])) --place;
    }
    const bool is_youngest = place == queue.order.size();
    const bool is_plain = is_youngest && direction == direction_ && is_steady();
    queue.bursts += added.num_bursts;
    queue.order.insert(place, slot);
    if (direction == direction_ && !is_closing_) {
        if (is_youngest) {
            set_head(added.left & ~wanted_, added.row);
        } else {
            find_heads(added.left);
        }
    }
    if (direction) {
        const Room below_high = room(1, shape_.drain_high, 1);
        if (!below_high.is_decided || below_high.at_ps > until_ps) is_draining_ = true;
    }
    const int64_t event_ps = event_after_accept(added, is_plain, now_ps);
    if (std::exchange(event_ps_, event_ps) != event_ps) next_place_ = kNone;
}

// Plain is what joins the end of a queue that is being served: it adds its own commands, no more.
int64_t MemoryChannel::event_after_accept(const MemoryChunk& added, bool is_plain,
                                          int64_t now_ps) {
    if (event_ps_ <= now_ps || is_closing() != is_closing_) return now_ps;
    if (!is_plain) return std::max(now_ps, next_event_ps(now_ps));
    if (!is_row_event_known_) find_row_event();
    int64_t found_ps = std::min(event_ps_, row_event_ps_);
    if (found_ps > floor_ps()) {
        tell_banks();
        found_ps = std::min(found_ps, column_ps(added));
    }
    return std::max(now_ps, found_ps);
}

// --- an instant

void MemoryChannel::decide(int64_t now_ps, std::vector<Completion>& finished) {
    next_place_ = kNone;
    if (run_bursts_ > 1 && issued_ps_ == now_ps && decided_ps_ < now_ps) end_run(now_ps);
    decided_ps_ = now_ps;
    do {
        refresh_until(now_ps);
        turn(now_ps >= issued_ps_);
        give_row_commands(now_ps);
    } while (issue(now_ps, finished) == 1);  // inside a run nothing else follows at once
    event_ps_ = std::max(now_ps, next_event_ps(now_ps));
}

// The last burst of a run goes at this instant: after the row commands, and a turn after it.
void MemoryChannel::end_run(int64_t now_ps) {
    turn(false);
    give_row_commands(now_ps);
}

int64_t MemoryChannel::next_event_ps(int64_t now_ps) {
    if (!is_row_event_known_) find_row_event();
    int64_t found_ps = row_event_ps_;
    if (queues_[0].bursts + queues_[1].bursts > 0) found_ps = std::min(found_ps, due_ps_);
    if ((is_draining_ && queues_[1].bursts <= shape_.drain_low) || wants_turn()) {
        found_ps = std::min(found_ps, issued_ps_);
    }
    return next_column_ps(now_ps, found_ps);
}

int64_t MemoryChannel::find_column(int64_t now_ps, int64_t before_ps) {
    tell_banks();
    const AgeOrder& order = queues_[direction_].order;
    const int64_t enough_ps = std::max(now_ps, floor_ps());  // nothing goes before that
    const uint32_t size = order.size();
    for (uint32_t place = 0; place < size && before_ps > enough_ps; ++place) {
        const MemoryChunk& chunk = chunks_[order[place]];
        if (!is_eligible(chunk)) continue;
        const int64_t at_ps = column_ps(chunk);
        if (at_ps >= before_ps) continue;
        before_ps = at_ps;
        next_place_ = place;
    }
    return before_ps;
}

// --- direction

void MemoryChannel::turn(bool may_turn) {
    bool has_turned = false;
    if (may_turn) {  // not inside a run, which is never cut by a turn
        if (queues_[1].bursts <= shape_.drain_low) is_draining_ = false;
        has_turned = wants_turn();
    }
    if (has_turned) {
        end_streak();
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

// --- counters

ChannelCounts MemoryChannel::counters() const {
    const int64_t bursts = num_bursts_[0] + num_bursts_[1];
    const int64_t row_hits = bursts - tally_.row_closed - tally_.row_conflicts;
    const int64_t paced_ps = (bursts - num_runs_) * (shape_.pace - shape_.timing.bl);
    return {num_bursts_[0],
            num_bursts_[1],
            row_hits,
            tally_.row_closed,
            tally_.row_conflicts,
            bursts * shape_.timing.bl,
            tally_.idle_ps,
            tally_.refresh_ps,
            tally_.turnaround_ps,
            tally_.bank_group_ps + paced_ps,
            tally_.row_ps,
            data_end_ps_};
}

std::vector<int64_t> MemoryChannel::openings() const {
    std::vector<int64_t> counts;
    for (const Bank& bank : banks_) counts.push_back(bank.num_openings);
    return counts;
}

}  // namespace tilewright
