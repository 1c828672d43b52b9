// From virtual addresses to memories, for one PE; executor/address.py is the same in
// Python. Page table and TLB are the MMU's, whoever looks.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "front_order.hpp"
#include "front_value.hpp"

namespace tilewright {

// Segments of an access, or a part of each, in one memory. A Piece in Python.
struct Piece {
    int64_t memory, address, first_segment, num_segments, skip_bytes, num_bytes, stride_bytes;
    int64_t walk;  // the command whose walk it waits for
};

// Who looks pages up: a stream, by what the MMU knows it by, and the number of its command.
struct Asker {
    PyObject* walker;
    int64_t command;
};

class PathFinder {
  public:
    PathFinder(const nanobind::object& mmu, nanobind::object locate, nanobind::object channels);

    // Appends all of an access, in order; false if some byte of it is not mapped.
    bool find_pieces(Spans spans, const Asker& by, std::vector<Piece>& pieces);
    // The DMA channel of the next access.
    int64_t take_channel(bool is_write);
    // The round trip of accesses to a memory, which the program builds at the first.
    int64_t trip(PyObject* program, int64_t memory, bool is_write, int64_t channel);

    // Pages found in the TLB and walks, since the last time.
    nanobind::tuple take_counts();

    int traverse(visitproc visit, void* arg);
    void clear();

  private:
    struct Mapping {  // virtual bytes from, to, and what to add for the physical ones
        int64_t low, high, delta;
    };
    struct Run {  // at kGap: bytes between two segments, which nobody accesses
        int64_t physical, num_bytes;
    };
    struct Home {
        int64_t memory, address;

        bool operator==(const Home& other) const = default;
    };
    struct Extent {  // physical bytes from, to, that lie side by side in one memory
        int64_t low, high, memory, delta;  // which is to add for the address there

        bool holds(int64_t physical) const { return low <= physical && physical < high; }
    };

    bool find_pieces(const Strided& span, int64_t first, const Asker& by,
                     std::vector<Piece>& pieces);
    bool find_runs(int64_t address, int64_t end);
    bool find_strided_runs(const Strided& span);
    void append_run(int64_t physical, int64_t num_bytes);
    const Mapping* mapping_at(int64_t address);
    Mapping find_mapping(int64_t address) const;
    static constexpr size_t kMaxMappings = 1 << 16;  // that are kept
    void refresh_mappings();
    int64_t look_up(int64_t first_page, int64_t last_page, const Asker& by);
    int64_t look_up(int64_t page, const Asker& by);
    int64_t walk_for(PyObject* page, const Ref& others, const Asker& by);
    void split_runs();
    Home home(int64_t physical);
    const Extent& extent_at(int64_t physical);

    nanobind::object locate_, channels_, table_, tlb_, spans_;
    int64_t page_bytes_;
    int64_t num_channels_[2];  // of reads and writes
    std::vector<Mapping> mappings_;  // of the table, those that were found so far, in order
    size_t last_mapping_ = 0;
    size_t tlb_entries_;
    int64_t num_hits_ = 0, num_walks_ = 0;
    std::vector<Extent> extents_;    // that were found so far, by where they begin
    size_t last_extent_ = 0;
    std::vector<int64_t> trips_[2];  // of reads and writes, by memory and channel
    std::vector<Run> runs_;          // of the span at hand
    struct Stretch {
        Home home;
        int64_t num_bytes;
    };
    std::vector<Stretch> stretches_;  // the same, each in one memory
};

void bind_path(nanobind::module_& module);

}  // namespace tilewright
