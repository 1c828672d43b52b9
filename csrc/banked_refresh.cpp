// Refresh of one channel of a banked memory.
#include "banked_channel.hpp"

namespace tilewright {

int64_t MemoryChannel::refresh_due_ps() const {
    if (shape_.refresh_turns == 0) return kNeverPs;
    return shape_.refresh_first + refresh_period_ * shape_.refresh_interval +
           refresh_turn_ * shape_.refresh_interval / shape_.refresh_turns;
}

int64_t MemoryChannel::blocked_ps(int bank, int64_t until_ps) const {
    const Window& found = window(bank);
    return found.blocked_ps - std::max<int64_t>(0, found.end_ps - until_ps);
}

void MemoryChannel::make_refreshes(int64_t now_ps) {
    skip_refreshes(now_ps);
    while ((due_ps_ = refresh_due_ps()) <= now_ps) {
        make_refresh();
        if (++refresh_turn_ == shape_.refresh_turns) {
            refresh_turn_ = 0;
            ++refresh_period_;
        }
    }
}

// After an idle time only the last two refreshes of a bank matter: one closes it, one is on time.
void MemoryChannel::skip_refreshes(int64_t now_ps) {
    const int64_t since_ps = now_ps - shape_.refresh_first;
    int64_t period = since_ps / shape_.refresh_interval;
    const int64_t rest_ps = since_ps - period * shape_.refresh_interval;
    int64_t turn = shape_.refresh_turns - 1;
    while (turn * shape_.refresh_interval / shape_.refresh_turns > rest_ps) --turn;
    period -= 2;
    if (++turn == shape_.refresh_turns) {
        turn = 0;
        ++period;
    }
    if (std::tie(period, turn) > std::tie(refresh_period_, refresh_turn_)) {
        refresh_period_ = period;
        refresh_turn_ = turn;
    }
}

void MemoryChannel::make_refresh() {
    const bool one = shape_.refresh_turns > 1;
    const int first = one ? static_cast<int>(refresh_turn_) : 0;
    const int end = one ? first + 1 : static_cast<int>(shape_.num_banks);
    int64_t start_ps = due_ps_;
    uint64_t closed = 0;
    for (int index = first; index < end; ++index) {
        Bank& bank = banks_[index];
        closed |= uint64_t{1} << index;
        if (bank.open_row != kClosed) {
            bank.open_row = kClosed;
            bank.idle_ps = std::max(due_ps_, bank.precharge_ps) + shape_.timing.rp;
            bank.opening = Opening::kClosed;
        }
        start_ps = std::max(start_ps, bank.idle_ps);
    }
    const int64_t end_ps = start_ps + shape_.refresh_busy;
    for (int index = first; index < end; ++index) banks_[index].idle_ps = end_ps;
    to_precharge_ &= ~closed;
    to_activate_ |= wanted_ & closed;
    is_row_event_known_ = false;
    Window& last = windows_[first];
    last.start_ps = due_ps_;
    last.end_ps = end_ps;
    last.blocked_ps += end_ps - due_ps_;
}

}  // namespace tilewright
