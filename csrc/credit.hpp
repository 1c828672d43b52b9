// The buffer behind a server, and credits on their way back to it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace tilewright {

constexpr int64_t kNever = -1;

struct Credit {
    int64_t at_ps;
    int64_t flits;
};

// Credits on their way back, in no order. Most channels have few, so two live in the object itself.
class Credits {
  public:
    Credits() = default;
    Credits(Credits&& other) noexcept
        : size_(other.size_),
          capacity_(other.capacity_),
          last_ps_(other.last_ps_),
          inside_(other.inside_) {
        if (other.items_ != other.inside_.data()) items_ = std::exchange(other.items_, nullptr);
    }
    Credits& operator=(Credits&&) = delete;
    ~Credits() {
        if (items_ != inside_.data()) delete[] items_;
    }

    bool is_full() const { return size_ == capacity_; }

    void push(const Credit& credit) {
        if (is_full()) [[unlikely]] grow();
        last_ps_ = std::max(last_ps_, credit.at_ps);
        items_[size_++] = credit;
    }

    // How many flits are back; forgets them.
    int64_t take_due(int64_t now_ps) {
        if (last_ps_ <= now_ps) return take_all();
        int64_t flits = 0;
        uint32_t num_left = 0;
        for (uint32_t place = 0; place < size_; ++place) {
            const Credit credit = items_[place];
            const bool is_due = credit.at_ps <= now_ps;
            flits += is_due ? credit.flits : 0;
            items_[num_left] = credit;
            num_left += !is_due;
        }
        size_ = num_left;
        return flits;
    }

    // When the first of them is back, kNever if there is none.
    int64_t first_ps() const {
        int64_t least_ps = kNever;
        for (uint32_t place = 0; place < size_; ++place) {
            if (least_ps == kNever || items_[place].at_ps < least_ps) least_ps = items_[place].at_ps;
        }
        return least_ps;
    }

  private:
    static constexpr uint32_t kInside = 2;

    int64_t take_all() {
        int64_t flits = 0;
        for (; size_ > 0; --size_) flits += items_[size_ - 1].flits;
        return flits;
    }

    [[gnu::noinline]] void grow() {
        auto* larger = new Credit[2 * capacity_];
        std::copy(items_, items_ + size_, larger);
        if (items_ != inside_.data()) delete[] items_;
        items_ = larger;
        capacity_ *= 2;
    }

    uint32_t size_ = 0;
    uint32_t capacity_ = kInside;
    int64_t last_ps_ = kNever;  // when all are back
    Credit* items_ = inside_.data();
    std::array<Credit, kInside> inside_{};
};

// A virtual channel's buffer behind a server. Credits on their way back are counted when they are
// needed, so that they cost no event unless somebody waits for them.
struct alignas(64) Channel {
    int64_t free_flits;
    Credits returning{};

    bool has_room(int64_t flits, int64_t now_ps) {
        return free_flits >= flits || free_at(now_ps) >= flits;
    }

    void give_back(const Credit& credit, int64_t now_ps) {
        if (returning.is_full()) free_at(now_ps);  // so that there stay few
        returning.push(credit);
    }

    int64_t free_at(int64_t now_ps) { return free_flits += returning.take_due(now_ps); }
};
static_assert(sizeof(Channel) == 64);

}  // namespace tilewright
