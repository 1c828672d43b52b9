// Task graphs in the form the core runs: one definition per row, edges in flat arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "slab.hpp"

namespace tilewright {

// The numbers of these two are shared with engine/graph.py and engine/fault.py.
enum class Kind : uint32_t { kTransfer = 0, kHold = 1, kTimer = 2, kExchange = 3, kEarlier = 4 };
enum class Fault {
    kTimeLimit = 1,
    kTimeReversed = 2,
    kOrder = 3,
    kReentered = 4,
    kUnknownRoute = 5,
    kNoRate = 6,
    kNotOneServer = 7,
    kUnknownSignal = 8,
    kUnknownTask = 9,
    kSignalLimit = 10,
    kBadRow = 11,
    kIdLimit = 12,
    kPacketLimit = 13,
    kWaitLimit = 14,
    kQueueLimit = 15,
    kUnknownTrip = 16,
    kBadAddress = 17,
    kHeldMemory = 18,
    kLateAccess = 19,
    kAwaitedSignal = 20,
    kEventLimit = 30,
    kClockLimit = 31,
};

constexpr int64_t kNoEffect = -1;
constexpr int64_t kMaxPackets = int64_t{1} << 24;  // of one transfer
// The last instant of a run, and the one at which a memory takes in its last access: see core.py.
constexpr int kTimeBits = 62;
constexpr int64_t kLastPs = (int64_t{1} << kTimeBits) - 1;
constexpr int64_t kLastAccessPs = int64_t{1} << 61;

struct SignalAmount {
    uint32_t signal;
    int64_t amount;
};

// How an exchange whose bytes lie apart is cut into packets.
struct Cut {
    int64_t segment_bytes;
    int64_t stride_bytes;  // from the address of a segment to that of the next
    int64_t segment_packets;
};

struct Span {
    uint32_t first = 0;
    uint32_t last = 0;

    uint32_t size() const { return last - first; }
    bool empty() const { return first == last; }
};

// What few tasks have.
struct Extra {
    int64_t effect = kNoEffect;
    Span waits{};
    Span raises{};

    bool tells() const { return effect != kNoEffect || !raises.empty(); }
};

// One cache line, since the definitions of all tasks that wait are more than a near cache holds.
struct alignas(64) Definition {
    Kind kind;
    uint32_t route = kNone;  // of an exchange, its round trip
    int64_t amount = 0;      // of an earlier task, its id
    int64_t delay_ps = 0;
    int64_t tag = 0;
    int64_t served_effect = kNoEffect;  // of an exchange
    uint32_t num_packets = 1;
    uint32_t cut = kNone;    // of an exchange in segments
    uint32_t extra = kNone;  // of the graph's
    uint32_t afters_end = 0;  // of its afters, which follow those of the row before
    Span dependents{};
};
static_assert(sizeof(Definition) == 64);

struct Graph {
    std::vector<Definition> definitions;
    std::vector<int64_t> offsets;  // of the ids of tasks from that of the first
    std::vector<Extra> extras;
    std::vector<uint32_t> afters;
    std::vector<uint32_t> dependents;
    std::vector<SignalAmount> signals;  // waits and raises
    std::vector<Cut> cuts;
    std::vector<int64_t> earlier_ids;  // of tasks that stand for earlier ones
    int64_t num_ids = 0;
    int64_t max_delay_ps = 0;
    bool has_ended = false;  // all tasks of its last submission are complete

    void clear() {
        definitions.clear();
        offsets.clear();
        extras.clear();
        afters.clear();
        dependents.clear();
        signals.clear();
        cuts.clear();
        earlier_ids.clear();
        num_ids = 0;
        max_delay_ps = 0;
        has_ended = false;
    }

    Span afters_of(uint32_t row) const {
        return {row == 0 ? 0 : definitions[row - 1].afters_end, definitions[row].afters_end};
    }

    // The number of what a task has of these, or kNone.
    uint32_t add_extra(const Extra& extra) {
        if (!extra.tells() && extra.waits.empty()) return kNone;
        extras.push_back(extra);
        return static_cast<uint32_t>(extras.size() - 1);
    }

    // Turn the afters around: a counting sort of the edges by the task they point to.
    void link_dependents() {
        for (uint32_t after : afters) ++definitions[after].dependents.last;
        uint32_t first = 0;
        for (Definition& definition : definitions) {
            const uint32_t count = definition.dependents.last;
            definition.dependents = {first, first};
            first += count;
        }
        dependents.resize(afters.size());
        for (uint32_t row = 0; row < definitions.size(); ++row) {
            const Span edges = afters_of(row);
            for (uint32_t edge = edges.first; edge < edges.last; ++edge) {
                dependents[definitions[afters[edge]].dependents.last++] = row;
            }
        }
    }
};

using GraphPtr = std::shared_ptr<Graph>;  // only has_ended changes once it is compiled

struct CompiledGraph {  // what Python holds
    GraphPtr graph;
};

}  // namespace tilewright
