// Space that commands take and give back while others are under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace tilewright {

// Bytes that are taken and given back while commands are under way.
class IssueSpace {
  public:
    IssueSpace(int64_t capacity, int64_t window)
        : capacity_(capacity), window_(window), fresh_(capacity), free_(capacity) {}

    int64_t free_bytes() const { return free_; }

    // Appends the tasks that must end before the bytes may be written. There has to be room.
    void take(int64_t num_bytes, std::vector<int64_t>& after);
    // The parts of a composite are one command, and all of them may still be going on.
    void give(int64_t num_bytes, const std::vector<int64_t>& uses, bool in_composite = false);
    // Of many releases, those whose uses are all of tasks before this one: these have ended.
    void forget_ended(int64_t first_task);
    void reset();

  private:
    static constexpr size_t kManyReleases = 1 << 16;

    struct Released {
        int64_t num_bytes;
        int64_t num_uses;
    };

    int64_t capacity_, window_;
    int64_t fresh_;  // never used
    int64_t free_;
    std::deque<Released> released_;  // oldest first
    std::deque<int64_t> uses_;       // of all of them, in the same order
};

}  // namespace tilewright
