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
    tell_banks();  // they may be closed now
    if ((to_precharge_ | to_activate_) & banks) is_row_event_known_ = false;
    wanted_ &= ~banks;
    to_precharge_ &= ~banks;
    to_activate_ &= ~banks;
    const AgeOrder& order = queues_[direction_].order;
    const uint32_t size = order.size();
    for (uint32_t place = 0; place < size && banks; ++place) {
        const MemoryChunk& chunk = chunks_[order[place]];
        const uint64_t found = chunk.left & banks;
        if (!found || !is_eligible(chunk)) continue;
        banks &= ~found;
        set_head(found, chunk.row);
    }
}

void MemoryChannel::set_head(uint64_t banks, int64_t row) {
    wanted_ |= banks;
    while (banks) {
        const int index = take_bank(banks);
        Bank& bank = banks_[index];
        bank.wanted_row = row;
        if (bank.open_row == row) continue;
        (bank.open_row == kClosed ? to_activate_ : to_precharge_) |= bit(index);
        is_row_event_known_ = false;
    }
}

int64_t MemoryChannel::precharge(int64_t now_ps) {
    int64_t next_ps = kNeverPs;
    for (uint64_t banks = to_precharge_; banks;) {
        const int index = take_bank(banks);
        Bank& bank = banks_[index];
        if (bank.precharge_ps > now_ps) {
            next_ps = std::min(next_ps, bank.precharge_ps);
            continue;
        }
        bank.open_row = kClosed;
        bank.idle_ps = now_ps + shape_.timing.rp;
        bank.opening = Opening::kConflict;
        to_precharge_ &= ~bit(index);
        to_activate_ |= bit(index);
    }
    return next_ps;
}

int64_t MemoryChannel::activate_ps(int bank) const {
    const int64_t own_ps =
        std::max(banks_[bank].idle_ps, banks_[bank].activated_ps + shape_.timing.rc);
    const int64_t others_ps = std::max(groups_[shape_.group_of[bank]].activate_ps,
                                       activates_ps_[oldest_activate_] + shape_.timing.faw);
    return std::max(own_ps, others_ps);
}

// The one of some wanted banks whose head is oldest; of one chunk's, the one that it needs first.
int MemoryChannel::oldest_of(uint64_t banks) const {
    if ((banks & (banks - 1)) == 0) return std::countr_zero(banks);
    const AgeOrder& order = queues_[direction_].order;
    uint32_t place = 0;
    while (!(chunks_[order[place]].left & banks) || !is_eligible(chunks_[order[place]])) ++place;
    uint32_t burst = chunks_[order[place]].next();
    while (!(bit(shape_.bank_of[burst]) & banks)) ++burst;
    return shape_.bank_of[burst];
}

int64_t MemoryChannel::activate(int64_t now_ps) {
    for (;;) {
        uint64_t ready = 0;
        int64_t next_ps = kNeverPs;
        for (uint64_t banks = to_activate_; banks;) {
            const int bank = take_bank(banks);
            const int64_t at_ps = activate_ps(bank);
            if (at_ps <= now_ps) ready |= bit(bank);
            next_ps = std::min(next_ps, at_ps);
        }
        if (!ready) return next_ps;
        open(oldest_of(ready), now_ps);
    }
}

void MemoryChannel::open(int index, int64_t now_ps) {
    Bank& bank = banks_[index];
    bank.open_row = bank.wanted_row;
    bank.activated_ps = now_ps;
    bank.precharge_ps = now_ps + shape_.timing.ras;
    const int own = shape_.group_of[index];
    for (int group = 0; group < shape_.num_groups; ++group) {
        const int64_t rrd_ps = group == own ? shape_.timing.rrd_l : shape_.timing.rrd_s;
        int64_t& ready_ps = groups_[group].activate_ps;
        ready_ps = std::max(ready_ps, now_ps + rrd_ps);
    }
    activates_ps_[oldest_activate_] = now_ps;
    oldest_activate_ = (oldest_activate_ + 1) % 4;
    to_activate_ &= ~bit(index);
}

}  // namespace tilewright
