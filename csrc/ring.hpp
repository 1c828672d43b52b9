// A queue that is short most of the time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

namespace tilewright {

// A first-in-first-out ring; push_sorted keeps it ordered from the back. Most queues are short, so
// the first two items live in the object itself.
template <typename Item>
class Ring {
  public:
    Ring() = default;
    Ring(Ring&& other) noexcept
        : head_(other.head_),
          size_(other.size_),
          mask_(other.mask_),
          inside_(other.inside_),
          outside_(std::move(other.outside_)),
          items_(outside_ ? outside_.get() : inside_.data()) {}
    Ring& operator=(Ring&&) = delete;

    bool empty() const { return size_ == 0; }
    bool is_full() const { return size_ > mask_; }
    uint32_t size() const { return size_; }
    const Item& front() const { return items_[head_]; }
    const Item& operator[](uint32_t place) const { return items_[index(place)]; }

    void pop_front() {
        head_ = index(1);
        --size_;
    }

    void push_back(const Item& item) {
        if (is_full()) [[unlikely]] grow();
        items_[index(size_++)] = item;
    }

    void push_sorted(const Item& item) {
        if (is_full()) [[unlikely]] grow();
        uint32_t place = size_++;
        for (; place > 0 && item < items_[index(place - 1)]; --place) {
            items_[index(place)] = items_[index(place - 1)];
        }
        items_[index(place)] = item;
    }

  private:
    static constexpr uint32_t kInside = 2;

    uint32_t index(uint32_t place) const { return (head_ + place) & mask_; }

    [[gnu::noinline]] void grow() {
        auto larger = std::make_unique<Item[]>(2 * size_);
        for (uint32_t place = 0; place < size_; ++place) larger[place] = items_[index(place)];
        outside_ = std::move(larger);
        items_ = outside_.get();
        mask_ = 2 * size_ - 1;
        head_ = 0;
    }

    uint32_t head_ = 0;
    uint32_t size_ = 0;
    uint32_t mask_ = kInside - 1;
    std::array<Item, kInside> inside_{};
    std::unique_ptr<Item[]> outside_;
    Item* items_ = inside_.data();
};

}  // namespace tilewright
