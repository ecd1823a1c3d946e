#pragma once

#include <vector>

#include "core/types.hpp"

namespace lantern::plan {

/// A block of memory that must exist from step `first` to step `last`, both included.
struct Interval {
  Bytes bytes = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
  Bytes alignment = 256;  ///< of the offset, a power of two; the size is rounded up to it as well
};

struct Packing {
  std::vector<Bytes> offsets;  ///< parallel to the intervals
  Bytes bytes = 0;             ///< end of the highest block
};

/// Offline interval packing (memory.md 3.4): first fit over several orders; then the blocks that
/// stick out of what is aimed at come earlier in the order, round after round, until no more than
/// `enough` bytes are taken. Very small blocks come last. Offsets are multiples of the alignment.
Packing pack(const std::vector<Interval>& intervals, Bytes enough = 0);

/// Largest sum of bytes alive at one step: no packing can be smaller.
Bytes live_peak(const std::vector<Interval>& intervals);

}  // namespace lantern::plan
