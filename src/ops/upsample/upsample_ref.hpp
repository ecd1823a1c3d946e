#pragma once

#include <cstdint>

// Reference upsample section: stride > 0 repeats cells, stride < 0 sums blocks. Backward ADDS into
// diff_src.

namespace lantern::ops::ref {

/// Output size of one side.
inline std::int64_t upsample_side(std::int64_t side, std::int64_t stride) {
  return stride > 0 ? side * stride : side / -stride;
}

/// Calls visit(src_index, dst_index) for every pair of cells that the operation links.
/// src [planes, h, w]; planes = n * c. Cells beyond the last whole block of a negative stride take
/// no part.
template <class Visit>
void for_each_upsample_pair(std::int64_t planes, std::int64_t h, std::int64_t w,
                            std::int64_t stride, Visit visit) {
  const std::int64_t oh = upsample_side(h, stride);
  const std::int64_t ow = upsample_side(w, stride);
  const std::int64_t up = stride > 0 ? stride : 1;
  const std::int64_t down = stride > 0 ? 1 : -stride;
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t y = 0; y < oh * down; ++y) {
      for (std::int64_t x = 0; x < ow * down; ++x) {
        visit((plane * h + y / up) * w + x / up, (plane * oh + y / down) * ow + x / down);
      }
    }
  }
}

/// stride s > 0: dst[y, x] = scale * src[y / s, x / s]. stride -t: dst = scale * sum of the t x t
/// block.
template <class T>
void upsample_forward(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                      std::int64_t stride, T scale, const T* src, T* dst) {
  const std::int64_t total = n * c * upsample_side(h, stride) * upsample_side(w, stride);
  for (std::int64_t i = 0; i < total; ++i) dst[i] = T(0);
  for_each_upsample_pair(n * c, h, w, stride,
                         [&](std::int64_t s, std::int64_t d) { dst[d] += scale * src[s]; });
}

template <class T>
void upsample_backward(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                       std::int64_t stride, T scale, const T* diff_dst, T* diff_src) {
  for_each_upsample_pair(n * c, h, w, stride, [&](std::int64_t s, std::int64_t d) {
    diff_src[s] += scale * diff_dst[d];
  });
}

}  // namespace lantern::ops::ref
