// Memories as a whole: their shape, the door in front of the channels, and the simple memory.
#include "banked.hpp"

#include <algorithm>

namespace tilewright {

// --- shape

MemoryShape::MemoryShape(const std::vector<int64_t>& numbers, std::vector<uint8_t> bank_table) {
    const int64_t* next = numbers.data();
    num_channels = *next++;
    num_groups = *next++;
    group_banks = *next++;
    stack_groups = *next++;
    span = Divisor(*next++);
    burst = Divisor(*next++);
    interleave = Divisor(*next++);
    for (int64_t& bursts : capacity) bursts = *next++;
    drain_high = *next++;
    drain_low = *next++;
    refresh_turns = *next++;
    refresh_interval = *next++;
    refresh_first = *next++;
    refresh_busy = *next++;
    for (int64_t MemoryTiming::*field :
         {&MemoryTiming::bl, &MemoryTiming::cl, &MemoryTiming::cwl, &MemoryTiming::rcd_read,
          &MemoryTiming::rcd_write, &MemoryTiming::rp, &MemoryTiming::ras, &MemoryTiming::rc,
          &MemoryTiming::ccd_s, &MemoryTiming::ccd_l, &MemoryTiming::ccd_r, &MemoryTiming::rrd_s,
          &MemoryTiming::rrd_l, &MemoryTiming::faw, &MemoryTiming::wtr_s, &MemoryTiming::wtr_l,
          &MemoryTiming::rtw, &MemoryTiming::wr, &MemoryTiming::rtp}) {
        timing.*field = *next++;
    }
    channels = Divisor(num_channels);
    num_banks = num_groups * group_banks;
    latency[0] = timing.cl;
    latency[1] = timing.cwl;
    rcd[0] = timing.rcd_read;
    rcd[1] = timing.rcd_write;
    for (int direction : {0, 1}) data_end[direction] = latency[direction] + timing.bl;
    close[0] = timing.rtp;
    close[1] = data_end[1] + timing.wr;
    bank_of = std::move(bank_table);
    for (int64_t bank = 0; bank < num_banks; ++bank) {
        group_of.push_back(static_cast<uint8_t>(bank / group_banks));
    }
    fill_spacing();
}

uint64_t MemoryShape::banks_between(uint32_t first, uint32_t end) const {
    if (first == end) return 0;
    if (end == bank_of.size() || chunk_bursts.remainder(end) == 0) return banks_from[first];
    uint64_t banks = 0;
    for (; first < end; ++first) banks |= uint64_t{1} << bank_of[first];
    return banks;
}

void MemoryShape::fill_spacing() {
    for (int64_t one = 0; one < num_groups; ++one) {
        for (int64_t other = 0; other < num_groups; ++other) {
            const bool same_stack = one / stack_groups == other / stack_groups;
            ccd.push_back(one == other ? timing.ccd_l : same_stack ? timing.ccd_s : timing.ccd_r);
        }
    }
    least_ccd = *std::min_element(ccd.begin(), ccd.end());
    pace = std::max(timing.bl, least_ccd);
    chunk_bursts = Divisor(burst.quotient(interleave.value()));
    const size_t size = static_cast<size_t>(chunk_bursts.value());
    paced.resize(bank_of.size());
    banks_from.resize(bank_of.size());
    for (size_t first = bank_of.size(); first-- > 0;) {
        const size_t end = (first / size + 1) * size;
        banks_from[first] = uint64_t{1} << bank_of[first];
        if (first + 1 < end) banks_from[first] |= banks_from[first + 1];
        size_t next = first + 1;
        for (bool keeps = true; keeps && next < end; next += keeps) {
            for (size_t earlier = first; earlier < next; ++earlier) {
                const int64_t apart_ps = static_cast<int64_t>(next - earlier) * pace;
                const int64_t least_ps =
                    ccd_of(group_of[bank_of[earlier]], group_of[bank_of[next]]);
                keeps = keeps && apart_ps >= least_ps;
            }
        }
        paced[first] = static_cast<uint16_t>(next - first);
    }
}

// --- the door

namespace {

// Calls visit(channel, row, first burst, bursts) for each chunk of an access.
template <typename Visit>
void for_chunks(const MemoryShape& shape, int64_t address, int64_t num_bytes, Visit visit) {
    const int64_t end = address + num_bytes;
    const int64_t number = shape.interleave.quotient(address);
    int64_t channel = shape.channels.remainder(number);
    int64_t local = shape.channels.quotient(number) * shape.interleave.value();
    int64_t start = address - number * shape.interleave.value();  // in its interleave
    while (address < end) {
        const int64_t size = std::min(end - address, shape.interleave.value() - start);
        const int64_t row = shape.span.quotient(local + start);
        const int64_t offset = local + start - row * shape.span.value();
        const int64_t first = shape.burst.quotient(offset);
        const int64_t last = shape.burst.quotient(offset + size - 1);
        visit(channel, row, first, last - first + 1);
        address += size;
        start = 0;
        if (++channel == shape.num_channels) {
            channel = 0;
            local += shape.interleave.value();
        }
    }
}

}  // namespace

BankedCore::BankedCore(const std::vector<int64_t>& numbers, std::vector<uint8_t> bank_table)
    : shape_(numbers, std::move(bank_table)),
      events_ps_(shape_.num_channels, kNeverPs),
      need_(shape_.num_channels, 0) {
    channels_.reserve(shape_.num_channels);
    for (int64_t channel = 0; channel < shape_.num_channels; ++channel) {
        channels_.emplace_back(shape_, accesses_);
    }
}

bool BankedCore::can_accept(int64_t now_ps, bool is_write, int64_t address,
                            int64_t num_bytes) const {
    const int64_t until = until_ps(now_ps);
    const int64_t capacity = shape_.capacity[is_write];
    bool fits = true;
    if (num_bytes <= (shape_.num_channels - 1) * shape_.interleave.value()) {  // one chunk each
        for_chunks(shape_, address, num_bytes,
                   [&](int64_t channel, int64_t, int64_t, int64_t bursts) {
                       fits = fits && channels_[channel].has_room(is_write, capacity, bursts, until);
                   });
        return fits;
    }
    for_chunks(shape_, address, num_bytes, [&](int64_t channel, int64_t, int64_t, int64_t bursts) {
        need_[channel] += bursts;
        fits = fits && channels_[channel].has_room(is_write, capacity, need_[channel], until);
    });
    for_chunks(shape_, address, num_bytes,
               [&](int64_t channel, int64_t, int64_t, int64_t) { need_[channel] = 0; });
    return fits;
}

int64_t BankedCore::room_ps(bool is_write, int64_t address, int64_t num_bytes) const {
    int64_t found_ps = 0;
    for_chunks(shape_, address, num_bytes, [&](int64_t channel, int64_t, int64_t, int64_t bursts) {
        need_[channel] += bursts;
        const int64_t room = channels_[channel].room_ps(is_write, need_[channel], advanced_ps_);
        found_ps = found_ps < 0 || room < 0 ? -1 : std::max(found_ps, room);
    });
    for_chunks(shape_, address, num_bytes,
               [&](int64_t channel, int64_t, int64_t, int64_t) { need_[channel] = 0; });
    return found_ps;
}

void BankedCore::accept(int64_t now_ps, int64_t access_id, bool is_write, int64_t address,
                        int64_t num_bytes) {
    uint32_t slot;
    if (free_accesses_.empty()) {
        slot = static_cast<uint32_t>(accesses_.size());
        accesses_.emplace_back();
    } else {
        slot = free_accesses_.back();
        free_accesses_.pop_back();
    }
    accesses_[slot] = {access_id, 0, 0, 0, 0};
    MemoryChunk chunk{};
    chunk.round = round_;
    chunk.access_id = access_id;
    chunk.access = slot;
    chunk.accepted_ps = now_ps;
    const int64_t until = until_ps(now_ps);
    for_chunks(shape_, address, num_bytes,
               [&](int64_t channel, int64_t row, int64_t first, int64_t bursts) {
                   chunk.row = row;
                   chunk.first = static_cast<uint32_t>(first);
                   chunk.num_bursts = static_cast<uint16_t>(bursts);
                   channels_[channel].accept(is_write, chunk, now_ps, until);
                   events_ps_[channel] = now_ps;
                   ++chunk.position;
               });
    accesses_[slot].chunks_left = chunk.position;
}

int64_t BankedCore::next_ps() const {
    int64_t found_ps = kNeverPs;
    for (int64_t event_ps : events_ps_) found_ps = std::min(found_ps, event_ps);
    return found_ps == kNeverPs ? -1 : found_ps;
}

const std::vector<Completion>& BankedCore::advance(int64_t now_ps) {
    for (size_t channel = 0; channel < channels_.size(); ++channel) {
        if (events_ps_[channel] > now_ps) continue;
        channels_[channel].advance(now_ps, finished_);
        events_ps_[channel] = channels_[channel].event_ps();
    }
    completions_.clear();
    for (uint32_t slot : finished_) {
        const MemoryAccess& access = accesses_[slot];
        completions_.emplace_back(access.access_id, access.done_ps, access.refresh_ps);
        free_accesses_.push_back(slot);
    }
    finished_.clear();
    std::sort(completions_.begin(), completions_.end(), [](const auto& one, const auto& other) {
        return std::tie(std::get<1>(one), std::get<0>(one)) <
               std::tie(std::get<1>(other), std::get<0>(other));
    });
    advanced_ps_ = now_ps;
    ++round_;
    return completions_;
}

std::vector<std::vector<int64_t>> BankedCore::counters() const {
    std::vector<std::vector<int64_t>> rows;
    for (const MemoryChannel& channel : channels_) rows.push_back(channel.counters());
    return rows;
}

// --- the simple memory

SimpleCore::SimpleCore(int64_t num_channels, int64_t interleave_bytes, int64_t bytes_per_us,
                       int64_t latency_ps)
    : interleave_(interleave_bytes),
      num_channels_(num_channels),
      bytes_per_us_(bytes_per_us),
      latency_ps_(latency_ps),
      channels_(num_channels) {}

void SimpleCore::accept(int64_t now_ps, int64_t access_id, bool is_write, int64_t address,
                        int64_t num_bytes) {
    now_ps_ = now_ps;
    waiting_.emplace_back(now_ps, access_id, is_write, address, num_bytes);
}

const std::vector<Completion>& SimpleCore::advance(int64_t now_ps) {
    now_ps_ = now_ps;
    completions_.clear();
    std::sort(waiting_.begin(), waiting_.end());
    for (const Waiting& access : waiting_) {
        completions_.emplace_back(std::get<1>(access), serve(access), 0);
    }
    waiting_.clear();
    std::sort(completions_.begin(), completions_.end(), [](const auto& one, const auto& other) {
        return std::tie(std::get<1>(one), std::get<0>(one)) <
               std::tie(std::get<1>(other), std::get<0>(other));
    });
    return completions_;
}

int64_t SimpleCore::serve(const Waiting& access) {
    constexpr int64_t kPsPerUs = 1'000'000;
    const auto& [now_ps, access_id, is_write, start, num_bytes] = access;
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
        channel.busy_ps += hold_ps;
        channel.free_ps = start_ps + hold_ps;
        ++channel.chunks[is_write];
        done_ps = std::max(done_ps, channel.free_ps);
        address = stop;
    }
    return done_ps + latency_ps_;
}

std::vector<std::vector<int64_t>> SimpleCore::counters() const {
    std::vector<std::vector<int64_t>> rows;
    for (const Channel& channel : channels_) {
        rows.push_back({channel.chunks[0], channel.chunks[1], 0, 0, 0, channel.busy_ps,
                        channel.idle_ps, 0, 0, 0, 0, channel.free_ps});
    }
    return rows;
}

}  // namespace tilewright
