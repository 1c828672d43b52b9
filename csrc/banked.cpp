// Memories as a whole: the door in front of the channels, and the simple memory.
#include "banked.hpp"

#include <algorithm>

namespace tilewright {

// --- the door

namespace {

void sort_completions(std::vector<Completion>& completions) {
    if (completions.size() < 2) return;
    std::sort(completions.begin(), completions.end(), [](const auto& one, const auto& other) {
        return std::tie(one.done_ps, one.access_id) < std::tie(other.done_ps, other.access_id);
    });
}

}  // namespace

BankedCore::BankedCore(std::shared_ptr<const MemoryShape> shape)
    : shared_shape_(std::move(shape)),
      shape_(*shared_shape_),
      gangs_(shape_, accesses_),
      need_(shape_.num_channels, 0) {}

void BankedCore::place(int64_t address, int64_t num_bytes) {
    placed_address_ = address;
    placed_bytes_ = num_bytes;
    swaths_.clear();
    const int64_t first = shape_.burst.quotient(address);
    int64_t left = shape_.burst.quotient(address + num_bytes - 1) - first + 1;
    const int64_t number = shape_.chunk_bursts.quotient(first);
    const int64_t whole = shape_.chunk_bursts.value();
    int64_t start = shape_.chunk_bursts.remainder(first);  // in its chunk
    int64_t channel = shape_.channels.remainder(number);
    int64_t local = shape_.channels.quotient(number);
    const auto add = [&](int64_t count, int64_t size) {
        const int64_t burst = shape_.span_chunks.remainder(local) * whole + start;
        swaths_.push_back({channel, channel + count, shape_.span_chunks.quotient(local),
                           static_cast<uint32_t>(burst), static_cast<uint16_t>(size)});
    };
    if (left <= whole - start) return add(1, left);  // in one chunk
    while (left > 0) {
        const int64_t size = std::min(left, whole - start);
        int64_t count = 1;
        if (size == whole) {
            count = std::min(shape_.num_channels - channel, shape_.chunk_bursts.quotient(left));
        }
        add(count, size);
        left -= count * size;
        start = 0;
        channel += count;
        if (channel == shape_.num_channels) {  // a round over the channels
            channel = 0;
            ++local;
        }
    }
}

bool BankedCore::can_accept(int64_t now_ps, bool is_write, int64_t address, int64_t num_bytes) {
    return is_there(find_room(now_ps, is_write, address, num_bytes), now_ps);
}

int64_t BankedCore::room_ps(bool is_write, int64_t address, int64_t num_bytes) {
    const Room room = find_room(advanced_ps_, is_write, address, num_bytes);
    return room.is_decided ? std::max<int64_t>({0, advanced_ps_, room.at_ps}) : -1;
}

Room BankedCore::find_rooms(int64_t now_ps, bool is_write, int64_t num_bytes) {
    Room found{true, kLongAgoPs};
    const int64_t capacity = shape_.capacity[is_write];
    auto look = [&](uint32_t gang, int64_t bursts) {
        decide(gang, now_ps - 1);
        const Room room = gangs_[gang].room(is_write, capacity, bursts);
        found.is_decided = found.is_decided && room.is_decided;
        found.at_ps = std::max(found.at_ps, room.at_ps);
    };
    if (num_bytes <= (shape_.num_channels - 1) * shape_.interleave.value()) {  // one chunk each
        for (const Swath& swath : swaths_) {
            gangs_.for_gangs(swath.first, swath.end,
                             [&](uint32_t gang) { look(gang, swath.num_bursts); });
        }
        return found;
    }
    for (const Swath& swath : swaths_) {
        for (int64_t channel = swath.first; channel < swath.end; ++channel) {
            look(gangs_.number_of(channel), need_[channel] += swath.num_bursts);
        }
    }
    std::fill(need_.begin(), need_.end(), 0);
    return found;
}

const std::vector<Completion>& BankedCore::catch_up(int64_t now_ps) {
    return decide_all(now_ps - 1);
}

void BankedCore::decide_now(uint32_t gang, int64_t until_ps) {
    gangs_[gang].advance(until_ps, finished_);
    gangs_.note_times(gang);
}

int64_t BankedCore::wake_ps() const {
    const int64_t found_ps = gangs_.next_wake_ps();
    return found_ps == kNeverPs - 1 ? -1 : found_ps;
}

int64_t BankedCore::least_read_ps(int64_t now_ps, int64_t access_id, int64_t address,
                                  int64_t num_bytes) {
    int64_t inside_ps = -1, outside_ps = now_ps;  // its last command
    for (const Swath& swath : swaths_of(address, num_bytes)) {
        gangs_.for_gangs(swath.first, swath.end, [&](uint32_t gang) {
            const ReadTurn turn = gangs_[gang].read_turn(now_ps, access_id);
            if (turn.is_inside) {
                inside_ps = std::max(inside_ps, turn.at_ps);
            } else {  // or served, if it is inside another channel
                const int64_t after_ps = (swath.num_bursts - 1) * shape_.pace;
                outside_ps = std::max(outside_ps, turn.at_ps + after_ps);
            }
        });
    }
    return (inside_ps < 0 ? outside_ps : inside_ps) + shape_.data_end[0];
}

int64_t BankedCore::accept(int64_t now_ps, int64_t access_id, bool is_write, int64_t address,
                           int64_t num_bytes, uint32_t tag) {
    const uint32_t slot = accesses_.add(MemoryAccess{{access_id, 0, 0, 0, tag}, 0, 0, now_ps});
    if (accepted_ps_ != now_ps) ++round_;
    accepted_ps_ = now_ps;
    has_accepted_ = true;
    MemoryChunk chunk{};
    chunk.round = round_;
    chunk.access_id = access_id;
    chunk.access = slot;
    const int64_t until = until_ps(now_ps);
    int64_t wake_ps = kNeverPs;
    for (const Swath& swath : swaths_of(address, num_bytes)) {
        chunk.row = swath.row;
        chunk.first = swath.burst;
        chunk.num_bursts = swath.num_bursts;
        const uint32_t part = shape_.part_of(swath.burst, swath.num_bursts);
        chunk.left = part != kNone
                         ? shape_.part_masks[part]
                         : shape_.banks_between(swath.burst, swath.burst + swath.num_bursts);
        chunk.pattern = part != kNone ? shape_.patterns[part] : kNone;
        gangs_.part_at(swath.first);
        gangs_.part_at(swath.end);
        gangs_.join_alike(swath.first, swath.end, now_ps);
        gangs_.for_gangs(swath.first, swath.end, [&](uint32_t gang) {
            gangs_[gang].accept(is_write, chunk, now_ps, until);
            wake_ps = std::min(wake_ps, gangs_.note_times(gang));
            chunk.position += gangs_[gang].num_members();
        });
    }
    accesses_[slot].chunks_left = chunk.position;
    return wake_ps;
}

int64_t BankedCore::next_ps() const {
    if (has_accepted_) return accepted_ps_;
    const int64_t found_ps = gangs_.next_event_ps();
    return found_ps == kNeverPs ? -1 : found_ps;
}

const std::vector<Completion>& BankedCore::advance(int64_t now_ps) {
    decide_all(now_ps);
    advanced_ps_ = now_ps;
    has_accepted_ = false;
    ++round_;
    return completions_;
}

const std::vector<Completion>& BankedCore::decide_all(int64_t until_ps) {
    due_.clear();
    const uint32_t size = gangs_.size();
    for (uint32_t gang = 0; gang < size; ++gang) {
        if (gangs_.event_ps(gang) > until_ps) continue;
        gangs_[gang].fetch();
        due_.push_back(gang);
    }
    for (uint32_t gang : due_) decide_now(gang, until_ps);
    completions_.clear();
    completions_.swap(finished_);
    sort_completions(completions_);
    return completions_;
}

std::vector<std::vector<int64_t>> BankedCore::counters() const {
    std::vector<std::vector<int64_t>> rows;
    for (int64_t channel = 0; channel < shape_.num_channels; ++channel) {
        const ChannelCounts counts = gangs_.counters(channel);
        rows.emplace_back(counts.begin(), counts.end());
    }
    return rows;
}

std::vector<std::vector<int64_t>> BankedCore::openings() const {
    std::vector<std::vector<int64_t>> rows;
    for (int64_t channel = 0; channel < shape_.num_channels; ++channel) {
        rows.push_back(gangs_.openings(channel));
    }
    return rows;
}

// --- the simple memory

SimpleCore::SimpleCore(const nanobind::handle& spec)
    : interleave_(number_of(spec, "interleave_bytes")),
      num_channels_(number_of(spec, "pseudo_channels")),
      bytes_per_us_(number_of(spec, "bytes_per_us")),
      latency_ps_(number_of(spec, "latency_ps")),
      channels_(static_cast<size_t>(number_of(spec, "pseudo_channels"))) {}

int64_t SimpleCore::accept(int64_t now_ps, int64_t access_id, bool is_write, int64_t address,
                           int64_t num_bytes, uint32_t tag) {
    now_ps_ = now_ps;
    waiting_.emplace_back(now_ps, access_id, is_write, address, num_bytes, tag);
    return now_ps;
}

const std::vector<Completion>& SimpleCore::advance(int64_t now_ps) {
    now_ps_ = now_ps;
    completions_.clear();
    std::sort(waiting_.begin(), waiting_.end());
    for (const Waiting& access : waiting_) {
        completions_.push_back(
            {std::get<1>(access), serve(access), 0, now_ps, std::get<5>(access)});
    }
    waiting_.clear();
    sort_completions(completions_);
    return completions_;
}

int64_t SimpleCore::serve(const Waiting& access) {
    constexpr int64_t kPsPerUs = 1'000'000;
    const auto& [now_ps, access_id, is_write, start, num_bytes, tag] = access;
    const int64_t end = start + num_bytes;
    int64_t done_ps = 0;
    for (int64_t address = start; address < end;) {
        const int64_t number = interleave_.quotient(address);
        const int64_t stop = std::min(end, (number + 1) * interleave_.value());
        Channel& channel = channels_[num_channels_.remainder(number)];
        const int64_t hold_ps =
            ((stop - address) * kPsPerUs + bytes_per_us_ - 1) / bytes_per_us_;
        const int64_t start_ps = std::max(now_ps, channel.free_ps);
        channel.idle_ps += start_ps - channel.free_ps;
        channel.busy_ps = std::min(channel.busy_ps + hold_ps, kNeverPs);
        channel.free_ps = std::min(start_ps + hold_ps, kNeverPs);
        channel.num_bytes[is_write] += stop - address;
        done_ps = std::max(done_ps, channel.free_ps);
        address = stop;
    }
    return done_ps + latency_ps_;
}

std::vector<std::vector<int64_t>> SimpleCore::counters() const {
    std::vector<std::vector<int64_t>> rows;
    for (const Channel& channel : channels_) {
        rows.push_back({channel.num_bytes[0], channel.num_bytes[1], 0, 0, 0, channel.busy_ps,
                        channel.idle_ps, 0, 0, 0, 0, channel.free_ps});
    }
    return rows;
}

std::vector<std::vector<int64_t>> SimpleCore::openings() const {
    return std::vector<std::vector<int64_t>>(channels_.size());
}

}  // namespace tilewright
