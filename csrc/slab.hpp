// Objects with stable small numbers; freed numbers are used again.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tilewright {

constexpr uint32_t kNone = UINT32_MAX;  // the slot of nothing

template <typename Item>
class Slab {
  public:
    template <typename Value>
    uint32_t add(Value&& value) {
        if (free_.empty()) {
            items_.push_back(std::forward<Value>(value));
            return static_cast<uint32_t>(items_.size() - 1);
        }
        const uint32_t slot = free_.back();
        free_.pop_back();
        items_[slot] = std::forward<Value>(value);
        return slot;
    }

    void remove(uint32_t slot) { free_.push_back(slot); }

    Item& operator[](uint32_t slot) { return items_[slot]; }
    const Item& operator[](uint32_t slot) const { return items_[slot]; }

  private:
    std::vector<Item> items_;
    std::vector<uint32_t> free_;
};

// Blocks of objects with consecutive numbers. A freed block is used again for one of its class: of
// as many objects, rounded up to a power of two.
template <typename Item>
class BlockSlab {
  public:
    // The number of the first of so many, at least one; they are as they were left.
    uint32_t take(uint32_t count) {
        std::vector<uint32_t>& free = free_[class_of(count)];
        if (free.empty()) {
            const size_t first = items_.size();
            items_.resize(first + std::bit_ceil(count));
            return static_cast<uint32_t>(first);
        }
        const uint32_t first = free.back();
        free.pop_back();
        return first;
    }

    void remove(uint32_t first, uint32_t count) { free_[class_of(count)].push_back(first); }

    size_t size() const { return items_.size(); }
    Item& operator[](uint32_t slot) { return items_[slot]; }
    const Item& operator[](uint32_t slot) const { return items_[slot]; }

  private:
    static constexpr int kClasses = 33;

    static int class_of(uint32_t count) { return std::bit_width(count - 1); }

    std::vector<Item> items_;
    std::array<std::vector<uint32_t>, kClasses> free_;
};

}  // namespace tilewright
