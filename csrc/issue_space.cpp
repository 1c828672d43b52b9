// Which bytes are taken first, and who has to have ended before.
#include "issue_space.hpp"

#include <algorithm>

namespace tilewright {

void IssueSpace::take(int64_t num_bytes, std::vector<int64_t>& after) {
    free_ -= num_bytes;
    int64_t missing = num_bytes - fresh_;
    if (missing <= 0) {
        fresh_ -= num_bytes;
        return;
    }
    fresh_ = 0;
    while (missing > 0) {
        Released& oldest = released_.front();
        const auto uses_end = uses_.begin() + oldest.num_uses;
        after.insert(after.end(), uses_.begin(), uses_end);
        if (oldest.num_bytes > missing) {
            oldest.num_bytes -= missing;
            return;
        }
        missing -= oldest.num_bytes;
        uses_.erase(uses_.begin(), uses_end);
        released_.pop_front();
    }
}

void IssueSpace::give(int64_t num_bytes, const std::vector<int64_t>& uses, bool in_composite) {
    free_ += num_bytes;
    const auto size = static_cast<int64_t>(uses.size());
    const auto count = in_composite ? size : std::min(window_, size);
    released_.push_back({num_bytes, count});
    uses_.insert(uses_.end(), uses.end() - count, uses.end());
}

void IssueSpace::forget_ended(int64_t first_task) {
    if (released_.size() < kManyReleases) return;
    Released all{0, 0};
    while (!released_.empty()) {
        const auto uses_end = uses_.begin() + released_.front().num_uses;
        const auto has_ended = [first_task](int64_t task) { return task < first_task; };
        if (!std::all_of(uses_.begin(), uses_end, has_ended)) break;
        all.num_bytes += released_.front().num_bytes;
        uses_.erase(uses_.begin(), uses_end);
        released_.pop_front();
    }
    if (all.num_bytes > 0) released_.push_front(all);
}

void IssueSpace::reset() {
    fresh_ = free_ = capacity_;
    released_.clear();
    uses_.clear();
}

}  // namespace tilewright
