// Islands: servers of a round trip that meet nobody else's packets most of the time, such as the way
// from a PE to its own slice of the HBM. An island that is asleep has its events in a queue of its
// own, and runs behind the clock of the core until something from outside touches it: a task that
// starts, a packet of others, or the earliest time at which a task on it could end. So its events
// happen in one go, while all that they need is in the cache. Nothing that can be seen depends on
// it: an event of an island comes after all those of it that are due before, and it is touched
// before anybody looks.
#pragma once

#include <cstdint>
#include <vector>

#include "agenda.hpp"

namespace tilewright {

enum Duty : uint32_t {
    kNoDuty = 0,
    kCatchUp,    // the island, up to here
    kTellServed  // the effect of a task whose last packet is served here
};

// Answers to packets of one gate that come back through one server: those awaited when it was last
// planned when to catch up, and of tasks that started since.
struct Way {
    uint32_t gate;
    uint32_t last;
    int64_t bytes = 0;
};

// Tasks whose ends others see only together, and the answers that they wait for.
struct Company {
    uint32_t last = kNone;  // the server that the answers come through
    int64_t packets = 0;
    int64_t bytes = 0;
    uint32_t task = kNone;  // the last one that waits
    int64_t bytes_before = 0;  // on its way

    // Of answers through several servers those through the last one count.
    void add(uint32_t through, int64_t num_packets, int64_t num_bytes) {
        if (through != last) packets = bytes = 0;
        last = through;
        packets += num_packets;
        bytes += num_bytes;
    }
};

struct Island {
    explicit Island(Slab<Event>& events) : queue(events) {}

    Agenda queue;                 // while asleep
    std::vector<uint32_t> tasks;  // exchanges on it that are under way
    int64_t due_ps = -1;          // when it catches up, -1 for never
    int64_t planned_ps = -1;      // when that was found, -1 if events have happened since
    int64_t touched_run = -1;     // the run after which it was touched from outside
    uint32_t num_foreign = 0;     // exchanges of others at its gate
    std::vector<uint32_t> servers;
    std::vector<uint32_t> memories;  // among them
    bool is_asleep = false;
    std::vector<Way> ways;  // a few

    Way& way(uint32_t gate, uint32_t last) {
        for (Way& known : ways) {
            if (known.gate == gate && known.last == last) return known;
        }
        return ways.emplace_back(Way{gate, last});
    }
};

}  // namespace tilewright
