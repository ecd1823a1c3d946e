#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/selected.hpp"

namespace lantern::plan {

/// A row of neighbouring ops that may be executed chunk by chunk: all of them on the first images,
/// then all on the next ones (memory.md, section 5). It ends where an op needs a sum over all
/// images that the row makes (statistics of batch normalisation), or cannot run on a part of the
/// images.
struct Segment {
  std::uint32_t first = 0, last = 0;  ///< positions in the program's ops, both included
  std::int64_t images = 0;            ///< 0: one op that runs whole
  int most_chunks = 1;                ///< a power of two
};

/// `ops` are indices into selected.ops, the ops of one program in order.
std::vector<Segment> find_segments(const graph::Selected& selected,
                                   std::span<const std::uint32_t> ops);

/// Ends of `chunks` parts (a power of two) of `images` images. Parts are whole groups of four
/// images, the largest image group of any sum, while there are enough of them. The ends for fewer
/// chunks are among those for more, as long as both are groups of four.
std::vector<std::int64_t> chunk_ends(std::int64_t images, int chunks);

}  // namespace lantern::plan
