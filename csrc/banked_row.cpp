// Rows of one channel of a banked memory: who decides them, precharge, activate.
#include "banked_channel.hpp"

namespace tilewright {

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

}  // namespace tilewright
