// What an access by computed offsets reaches, in items; executor/address.py is the same in
// Python.
#pragma once

#include <cstdint>
#include <vector>

#include "front_form.hpp"
#include "front_value.hpp"

namespace tilewright {

// Neighbouring elements that lie together, whatever the offsets are.
struct Items {
    std::vector<int64_t> addresses;  // of each, in the order of their places
    int64_t item_bytes = 0;
};

// Of the places inside a box, from the value of a block of offsets in elements of so many bytes; the
// rows of a table by an index are an item each. False: not here, Python finds them.
bool list_items(const Form& addresses, const Region& box, bool is_masked, int64_t step,
                PyObject* offsets, Items& items);

}  // namespace tilewright
