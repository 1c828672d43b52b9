// Objects with stable small numbers; freed numbers are used again.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tilewright {

template <typename Item>
class Slab {
  public:
    uint32_t add(Item item) {
        if (free_.empty()) {
            items_.push_back(std::move(item));
            return static_cast<uint32_t>(items_.size() - 1);
        }
        const uint32_t slot = free_.back();
        free_.pop_back();
        items_[slot] = std::move(item);
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
