#pragma once

#include <cstdint>
#include <type_traits>

#include "core/error.hpp"
#include "core/types.hpp"

namespace lantern::ops {

/// Extents of a data tensor as the kernels walk it: [n][blocks][spatial][block lanes].
struct BlockedExtents {
  std::int64_t n, c, blocks, spatial;
  int block;

  BlockedExtents(const Shape& shape, int lanes)
      : n(shape.n()),
        c(shape.c()),
        blocks(ceil_div(shape.c(), lanes)),
        spatial(shape.h() * shape.w()),
        block(lanes) {}
  std::int64_t plane() const { return spatial * block; }
  std::int64_t offset(std::int64_t image, std::int64_t channel_block) const {
    return (image * blocks + channel_block) * plane();
  }
  /// Lanes of the last channel block that hold channels; the others must be written as zero.
  int lanes_used(std::int64_t channel_block) const {
    const std::int64_t left = c - channel_block * block;
    return static_cast<int>(left < block ? left : block);
  }
  /// The same maps of fewer images.
  BlockedExtents with_images(std::int64_t images) const {
    BlockedExtents e = *this;
    e.n = images;
    return e;
  }
  std::int64_t elements() const { return n * blocks * plane(); }
};

template <int B>
using BlockTag = std::integral_constant<int, B>;

/// Calls body(BlockTag<B>) for the block size of a layout.
template <typename Body>
decltype(auto) with_block(int block, Body body) {
  switch (block) {
    case 16:
      return body(BlockTag<16>{});
    case 8:
      return body(BlockTag<8>{});
    case 1:
      return body(BlockTag<1>{});
    default:
      break;
  }
  assertion_failed("block is 1, 8 or 16", "a layout has a block that kernels know");
}

}  // namespace lantern::ops
