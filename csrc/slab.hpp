// Objects with stable small numbers; freed numbers are used again.
#pragma once

#include <algorithm>
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

    // Make space for so many more, without moving items more often than they double.
    void reserve_more(size_t count) {
        const size_t needed = items_.size() + count - std::min(count, free_.size());
        if (needed > items_.capacity()) items_.reserve(std::max(needed, 2 * items_.capacity()));
    }

    // A slot whose item is as it was left, so that it can keep what it has allocated.
    uint32_t take() {
        if (free_.empty()) return add(Item{});
        const uint32_t slot = free_.back();
        free_.pop_back();
        return slot;
    }

    void remove(uint32_t slot) { free_.push_back(slot); }

    Item& operator[](uint32_t slot) { return items_[slot]; }
    const Item& operator[](uint32_t slot) const { return items_[slot]; }

  private:
    std::vector<Item> items_;
    std::vector<uint32_t> free_;
};

}  // namespace tilewright
