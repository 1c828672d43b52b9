// Those who submit tasks. Of an owner that has ended and whose tasks have, next to nothing is kept;
// it may come back.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tilewright {

struct Owner {
    int64_t next_sequence = 0;
    int64_t performed_id = -1;          // of the task that its program waits for, or waited
    uint32_t num_finished = 0;          // of those in submissions
    bool has_ended = false;             // it submits no more
    std::vector<uint32_t> submissions;  // in the order of first ids; finished ones at times
};

class Owners {
  public:
    // nullptr if nothing of it is kept: all that it has submitted is complete.
    Owner* find(int64_t number) {
        Page& page = page_of(number);
        if (page.owners == nullptr) [[unlikely]] {
            if (page.num_forgotten > 0) return nullptr;
            page.owners = std::make_unique<Block>();
        }
        return &(*page.owners)[place_of(number)];
    }

    // One that submits; it stays where it is. One that had ended counts on behind its page.
    Owner& submitter(int64_t number) {
        Owner* owner = find(number);
        if (owner != nullptr && !owner->has_ended) [[likely]] return *owner;
        return revive(number);
    }

    void end(int64_t number) {
        Owner* owner = find(number);
        if (owner == nullptr || owner->has_ended) return;
        owner->has_ended = true;
        Page& page = page_of(number);
        page.next_sequence = std::max(page.next_sequence, owner->next_sequence);
        if (owner->submissions.empty()) forget(number);
    }

    // One that has ended and has nothing under way; the last of a page frees it.
    void forget(int64_t number) {
        Page& page = page_of(number);
        (*page.owners)[place_of(number)] = Owner{.has_ended = true};
        if (++page.num_forgotten == kPageOwners) page.owners.reset();
    }

    template <typename Visit>
    void each(Visit visit) const {
        for (const Page& page : pages_) {
            if (page.owners == nullptr) continue;
            for (const Owner& owner : *page.owners) visit(owner);
        }
    }

  private:
    static constexpr size_t kPageOwners = 64;  // also in engine/reference/state.py
    using Block = std::array<Owner, kPageOwners>;

    struct Page {
        std::unique_ptr<Block> owners;
        size_t num_forgotten = 0;
        int64_t next_sequence = 0;  // behind all that owners which ended have counted
    };

    static size_t place_of(int64_t number) { return static_cast<size_t>(number) % kPageOwners; }

    Page& page_of(int64_t number) {
        const size_t index = static_cast<size_t>(number) / kPageOwners;
        if (index >= pages_.size()) pages_.resize(index + 1);
        return pages_[index];
    }

    Owner& revive(int64_t number) {
        Page& page = page_of(number);
        if (page.owners == nullptr) {
            page.owners = std::make_unique<Block>();
            for (Owner& each : *page.owners) each.has_ended = true;
        }
        Owner& owner = (*page.owners)[place_of(number)];
        if (owner.submissions.empty()) --page.num_forgotten;
        owner.has_ended = false;
        owner.next_sequence = page.next_sequence;
        return owner;
    }

    std::vector<Page> pages_;
};

}  // namespace tilewright
