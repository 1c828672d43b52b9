// Arrays for captured bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "front_layout.hpp"

namespace tilewright {

// Arrays of plain bytes, each used again once its last holder is gone: a kernel loads blocks of few
// types, over and over, and to make an array costs as much as to fill it.
class ArrayPool {
  public:
    struct Taken {
        Ref array;
        char* bytes;
    };

    // An array of the type's shape; its elements are anything.
    Taken take(const TypeView& type);
    void clear() { shelves_.clear(); }

  private:
    static constexpr int64_t kMaxBytes = int64_t{1} << 24;  // that are kept
    static constexpr int kTries = 2;

    struct Shelf {
        std::vector<Taken> arrays;
        size_t next = 0;  // has been out for longest, so that it is the likeliest to be back
    };

    std::unordered_map<const TypeView*, Shelf> shelves_;
    int64_t num_bytes_ = 0;
};

// An array of a shape and of the plain dtype of a type.
ArrayPool::Taken empty_array(const Ref& shape, const TypeView& type);

}  // namespace tilewright
