// When two channels of a banked memory go the same way: then they may become one.
#include "banked_channel.hpp"

namespace tilewright {

namespace {

// Of two times that bound something from below; what is past bounds nothing any more.
bool bound_alike(int64_t one_ps, int64_t other_ps, int64_t past_ps) {
    return one_ps == other_ps || std::max(one_ps, other_ps) <= past_ps;
}

}  // namespace

// All decisions before now_ps have been made. What follows from the rest need not be compared.
bool MemoryChannel::is_like(const MemoryChannel& other, int64_t now_ps) const {
    const int64_t past_ps = std::min(now_ps, data_end_ps_) - shape_.reach;
    return is_going_like(other, now_ps) && waits_like(other, 0) && waits_like(other, 1) &&
           has_groups_like(other, past_ps) && has_banks_like(other, past_ps) &&
           has_windows_like(other, now_ps);
}

// Directions, and the run that may be going on.
bool MemoryChannel::is_going_like(const MemoryChannel& other, int64_t now_ps) const {
    const auto state = [](const MemoryChannel& one) {
        return std::tie(one.data_end_ps_, one.issued_ps_, one.direction_, one.last_direction_,
                        one.is_draining_, one.is_closing_, one.num_begun_, one.due_ps_);
    };
    const auto run = [](const MemoryChannel& one) {
        return std::tie(one.run_start_ps_, one.run_bursts_, one.run_direction_, one.decided_ps_);
    };
    const auto round = [](const MemoryChannel& one) {
        return std::tie(one.accepted_ps_, one.accepted_round_);
    };
    const bool has_run = issued_ps_ >= now_ps;
    const bool has_round = std::max(accepted_ps_, other.accepted_ps_) >= now_ps;
    return state(*this) == state(other) && (!has_run || run(*this) == run(other)) &&
           (!has_round || round(*this) == round(other));
}

bool MemoryChannel::waits_like(const MemoryChannel& other, int direction) const {
    const AgeOrder& order = queues_[direction].order;
    const AgeOrder& others = other.queues_[direction].order;
    if (order.size() != others.size()) return false;
    for (uint32_t place = 0; place < order.size(); ++place) {
        const MemoryChunk& chunk = chunks_[order[place]];
        const MemoryChunk& same = other.chunks_[others[place]];
        const auto state = [](const MemoryChunk& one) {
            return std::tie(one.access, one.row, one.first, one.num_bursts, one.issued);
        };
        if (state(chunk) != state(same)) return false;
        const int bank = last_bank(chunk);
        const int64_t since_ps = window(bank).blocked_ps - chunk.blocked_ps;
        if (since_ps != other.window(bank).blocked_ps - same.blocked_ps) return false;
    }
    return true;
}

bool MemoryChannel::has_groups_like(const MemoryChannel& other, int64_t past_ps) const {
    for (size_t index = 0; index < groups_.size(); ++index) {
        const Group& group = groups_[index];
        const Group& same = other.groups_[index];
        if (!bound_alike(group.spacing_ps, same.spacing_ps, past_ps) ||
            !bound_alike(group.turn_ps, same.turn_ps, past_ps) ||
            !bound_alike(group.write_ps, same.write_ps, past_ps) ||
            !bound_alike(group.activate_ps, same.activate_ps, past_ps)) {
            return false;
        }
    }
    for (unsigned back = 0; back < 4; ++back) {
        const int64_t activate_ps = activates_ps_[(oldest_activate_ + back) % 4];
        const int64_t same_ps = other.activates_ps_[(other.oldest_activate_ + back) % 4];
        if (!bound_alike(activate_ps, same_ps, past_ps)) return false;
    }
    return bound_alike(read_ps_, other.read_ps_, past_ps);
}

bool MemoryChannel::has_banks_like(const MemoryChannel& other, int64_t past_ps) const {
    for (size_t index = 0; index < banks_.size(); ++index) {
        const Bank& bank = banks_[index];
        const Bank& same = other.banks_[index];
        if (bank.open_row != same.open_row || bank.opening != same.opening ||
            !bound_alike(bank.activated_ps, same.activated_ps, past_ps) ||
            !bound_alike(bank.precharge_ps, same.precharge_ps, past_ps) ||
            !bound_alike(bank.idle_ps, same.idle_ps, past_ps)) {
            return false;
        }
    }
    return true;
}

// A refresh concerns those that waited before it was over, and those that come now.
bool MemoryChannel::has_windows_like(const MemoryChannel& other, int64_t now_ps) const {
    int64_t since_ps = now_ps;
    for (const Queue& queue : queues_) {
        if (queue.order.size() == 0) continue;
        since_ps = std::min(since_ps, accesses_[chunks_[queue.order[0]].access].accepted_ps);
    }
    for (size_t index = 0; index < windows_.size(); ++index) {
        const Window& last = windows_[index];
        const Window& same = other.windows_[index];
        if (std::max(last.end_ps, same.end_ps) <= since_ps) continue;
        if (last.start_ps != same.start_ps || last.end_ps != same.end_ps) return false;
    }
    return true;
}

}  // namespace tilewright
