#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/program.hpp"

namespace lantern::plan {

/// The first thing that is wrong, in plain words, or nothing.
using Fault = std::optional<std::string>;

/// A buffer as the checker sees it.
struct BufferFacts {
  std::uint32_t root = 0;  ///< the buffer whose bytes it lies in; itself when they are its own
  std::int64_t first_image = 0;
  std::int64_t images = 1;  ///< a tensor that is not divided counts as one image
  Bytes image_bytes = 0;
  bool persistent = false;
};

/// The bytes of a buffer with bytes of its own, and of all that take them over in turn.
struct Region {
  Bytes begin = 0, end = 0;            ///< padded where it is copied to or from a file
  std::vector<std::uint32_t> members;  ///< the buffers in it
};

/// What does not change while a program runs: where buffers and slots lie.
struct Layout {
  std::vector<BufferFacts> buffers;
  std::vector<Region> regions;  ///< by buffer; empty where the bytes are another's
};

/// Checks buffers, slots and the tables of copies, each on its own, and collects the facts.
Fault check_layout(const graph::Selected& selected, const Program& program, Layout& layout);

/// "conv.out", "conv.out images 4..7".
std::string describe(const graph::Selected& selected, const Program& program, std::uint32_t buffer);

}  // namespace lantern::plan
