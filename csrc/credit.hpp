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

// Credits on their way back, in no order. Most buffers have few, so two live in the object itself.
class Credits {
  public:
    Credits() = default;
    Credits(Credits&& other) noexcept
        : size_(other.size_),
          capacity_(other.capacity_),
          is_awaited_(other.is_awaited_),
          inside_(other.inside_) {
        if (other.items_ != other.inside_.data()) items_ = std::exchange(other.items_, nullptr);
    }
    Credits& operator=(Credits&&) = delete;
    ~Credits() {
        if (items_ != inside_.data()) delete[] items_;
    }

    // Whether a packet that could start otherwise waits for one.
    bool is_awaited() const { return is_awaited_; }
    void set_awaited(bool is_awaited) { is_awaited_ = is_awaited; }

    bool is_full() const { return size_ == capacity_; }

    // Not when it is full.
    void push(const Credit& credit) { items_[size_++] = credit; }

    // If only two were on their way and are back: their flits, and they are forgotten; else 0.
    int64_t take_pair(int64_t now_ps) {
        if (size_ != kInside || items_[0].at_ps > now_ps || items_[1].at_ps > now_ps) return 0;
        size_ = 0;
        return items_[0].flits + items_[1].flits;
    }

    // So that there is room for another. Where many stay on their way there will be, or each of the
    // next would be looked for among them.
    void make_room() {
        if (size_ > capacity_ / 2) grow();
    }

    // How many flits are back; forgets them.
    int64_t take_due(int64_t now_ps) {
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

    [[gnu::noinline]] void grow() {
        auto* larger = new Credit[2 * capacity_];
        std::copy(items_, items_ + size_, larger);
        if (items_ != inside_.data()) delete[] items_;
        items_ = larger;
        capacity_ *= 2;
    }

    uint32_t size_ = 0;
    uint32_t capacity_ : 31 = kInside;
    uint32_t is_awaited_ : 1 = 0;
    Credit* items_ = inside_.data();
    std::array<Credit, kInside> inside_{};
};

// A virtual channel's buffer behind a server. Credits on their way back are counted when they are
// needed, so that they cost no event unless somebody waits for them.
struct alignas(64) PacketBuffer {
    int64_t free_flits;
    int64_t credit_ps;  // how long a credit travels
    Credits returning{};

    bool has_room(int64_t flits, int64_t now_ps) {
        return free_flits >= flits || free_at(now_ps) >= flits;
    }

    void give_back(const Credit& credit, int64_t now_ps) {
        if (returning.is_full()) {
            const int64_t flits = returning.take_pair(now_ps);
            free_flits += flits;
            if (flits == 0) [[unlikely]] tidy(now_ps);
        }
        returning.push(credit);
    }

    int64_t free_at(int64_t now_ps) { return free_flits += returning.take_due(now_ps); }

  private:
    [[gnu::noinline]] void tidy(int64_t now_ps) {
        free_at(now_ps);
        returning.make_room();
    }
};
static_assert(sizeof(PacketBuffer) == 64);

}  // namespace tilewright
