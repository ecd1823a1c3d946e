#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/blocks.hpp"

// The classic rule of adding maps of other sizes, shared by the plain and the weighted sum; not for
// other folders.
namespace lantern::ops {

/// Visits (channel, index in result, index in source) of every pair of cells of an image that are
/// added: the first min(C) channels, on the larger map every n-th cell (reference/layers.md 4.6,
/// "Ours").
template <typename Visit>
void for_each_add_pair(const Shape& result, const Shape& source, int block, std::int64_t image,
                       Visit visit) {
  const BlockedExtents to(result, block);
  const BlockedExtents from(source, block);
  const auto step = [](std::int64_t large, std::int64_t small) {
    return std::max<std::int64_t>(1, large / small);
  };
  const std::int64_t to_y = step(result.h(), source.h()) * result.w();
  const std::int64_t to_x = step(result.w(), source.w());
  const std::int64_t from_y = step(source.h(), result.h()) * source.w();
  const std::int64_t from_x = step(source.w(), result.w());
  const std::int64_t rows = std::min(result.h(), source.h());
  const std::int64_t columns = std::min(result.w(), source.w());
  for (std::int64_t c = 0; c < std::min(result.c(), source.c()); ++c) {
    const std::int64_t a = to.offset(image, c / block) + c % block;
    const std::int64_t b = from.offset(image, c / block) + c % block;
    for (std::int64_t j = 0; j < rows; ++j) {
      for (std::int64_t i = 0; i < columns; ++i) {
        visit(c, a + (j * to_y + i * to_x) * block, b + (j * from_y + i * from_x) * block);
      }
    }
  }
}

}  // namespace lantern::ops
