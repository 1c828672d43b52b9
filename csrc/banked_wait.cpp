// How long a read waits at least in a banked memory, so that whoever waits for it can look late.
#include "banked_channel.hpp"

namespace tilewright {

// The oldest chunks whose rows are open go first, one after the other at the bus's pace: while one
// of them is ready at every step, no younger one goes. That holds until a refresh is due, or until
// enough writes have come for a drain, which then lasts as long as it takes to make them few.
ReadTurn MemoryChannel::read_turn(int64_t now_ps, int64_t access_id) {
    tell_banks();
    const MemoryTiming& timing = shape_.timing;
    bool goes_on = event_ps_ >= now_ps && direction_ == 0 && !is_closing_ && !is_draining_ &&
                   std::max({timing.ccd_s, timing.ccd_l, timing.ccd_r}) <= 2 * shape_.pace;
    const int64_t drain_ps = now_ps + (shape_.drain_high - shape_.drain_low) * shape_.pace;
    const int64_t most_ps = std::max(now_ps, std::min(due_ps_, drain_ps));
    int64_t at_ps = goes_on ? std::max(now_ps, floor_ps()) : now_ps;
    const MemoryChunk* before = nullptr;
    const AgeOrder& order = queues_[0].order;
    for (uint32_t place = 0; place < order.size(); ++place) {
        const MemoryChunk& chunk = chunks_[order[place]];
        if (chunk.access_id == access_id) {
            const int64_t first_ps = chunk.is_begun() ? now_ps : std::min(at_ps, most_ps);
            return {true, first_ps + (chunk.num_left() - 1) * shape_.pace};
        }
        // what comes at this instant may still be put before others of it
        goes_on = goes_on && accesses_[chunk.access].accepted_ps < now_ps &&
                  is_ready_at(chunk, before, at_ps);
        if (goes_on) at_ps += chunk.num_left() * shape_.pace;
        before = &chunk;
    }
    return {false, std::min(at_ps, most_ps)};
}

// If all its bursts may go at the bus's pace from some time on, after the last of the one before.
bool MemoryChannel::is_ready_at(const MemoryChunk& chunk, const MemoryChunk* before,
                                int64_t at_ps) const {
    if (shape_.paced[chunk.next()] < chunk.num_left() || (to_precharge_ & chunk.left)) return false;
    const int first = shape_.bank_of[chunk.next()];
    if (before != nullptr && shape_.ccd_of(shape_.group_of[last_bank(*before)],
                                           shape_.group_of[first]) > shape_.pace) {
        return false;
    }
    for (uint64_t banks = chunk.left; banks;) {
        const int index = take_bank(banks);
        const Bank& bank = banks_[index];
        const Group& group = groups_[shape_.group_of[index]];
        const int64_t ready_ps = std::max(bank.activated_ps + shape_.rcd[0], group.turn_ps);
        if (bank.open_row != chunk.row || ready_ps > at_ps) return false;
        const int64_t own_ps = at_ps + (index == first ? 0 : shape_.pace);
        if (before == nullptr && spaced_ps(group) > own_ps) return false;
    }
    return true;
}

}  // namespace tilewright
