// Program order of memory accesses; executor/order.py is the same in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace tilewright {

// First in, first out. Most have a few items at a time: those that are gone are dropped now and then.
template <typename Item>
class Fifo {
  public:
    bool empty() const { return first_ == items_.size(); }
    const Item& front() const { return items_[first_]; }
    auto begin() const { return items_.begin() + static_cast<ptrdiff_t>(first_); }
    auto end() const { return items_.end(); }
    void push_back(const Item& item) { items_.push_back(item); }
    void clear() {
        items_.clear();
        first_ = 0;
    }
    void pop_front() {
        if (++first_ < kDropAfter || 2 * first_ < items_.size()) return;
        items_.erase(items_.begin(), begin());
        first_ = 0;
    }

  private:
    static constexpr size_t kDropAfter = 16;

    std::vector<Item> items_;
    size_t first_ = 0;
};

// Segments at equal distances: where an access touches memory. A Span in Python.
struct Strided {
    int64_t address, num_segments, segment_bytes, stride_bytes;

    int64_t end() const { return address + (num_segments - 1) * stride_bytes + segment_bytes; }
    // Exact for equal strides and for single segments; else true where the hulls meet.
    bool overlaps(const Strided& other) const;
};

using Spans = std::span<const Strided>;

// Remembers the accesses of a program as long as they can be under way, page by page.
class AccessOrder {
  public:
    explicit AccessOrder(int64_t window) : window_(window) {}

    // Append the tasks that an access of this command comes after, each once.
    void before_read(Spans spans, int64_t command, std::vector<int64_t>& after) const;
    void before_write(Spans spans, int64_t command, std::vector<int64_t>& after) const;
    void note_read(Spans spans, int64_t command, int64_t task);
    void note_write(Spans spans, int64_t command, int64_t task);
    // Whether the next write comes after all accesses before it.
    void release(bool wanted) { releases_ = wanted; }
    // For the next program.
    void clear();
    // All accesses from now on come after this one.
    void acquire(int64_t command, int64_t task) { acquired_ = {command, task}; }

  private:
    struct Entry {
        int64_t command, task;
        Strided span;
    };
    struct Page {
        uint64_t turn = 0;  // the program whose accesses these are; those of others count as none
        Fifo<Entry> entries;
    };
    using Table = std::unordered_map<int64_t, Page>;  // by page; kept for their memory
    struct Issued {
        int64_t command, task;
    };

    void note(Table& table, Spans spans, int64_t command, int64_t task);
    void overlapping(const Table& table, Spans spans, int64_t command,
                     std::vector<int64_t>& after) const;

    void after_acquired(int64_t command, std::vector<int64_t>& after) const;

    static constexpr size_t kKeptPages = 256;

    int64_t window_;
    uint64_t turn_ = 1;
    Table reads_, writes_;
    Fifo<Issued> recent_;
    bool releases_ = false;
    std::optional<Issued> acquired_;
};

void bind_order(nanobind::module_& module);

}  // namespace tilewright
