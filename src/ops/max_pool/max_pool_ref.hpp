#pragma once

#include <cstdint>
#include <limits>

#include "ops/conv/conv_geometry.hpp"

// Reference max pooling. Backward ADDS into diff_src.

namespace lantern::ops::ref {

/// Index of a window that covers no cell of src: its dst is lowest(), it gets no gradient.
inline constexpr std::uint16_t kNoCell = 0xFFFF;

/// dst and index [n, c, oh, ow]; index = ky * kw + kx of the first maximum in row-major window
/// order.
template <class T>
void max_pool_forward(const PoolGeometry& g, const T* src, T* dst, std::uint16_t* index) {
  for (std::int64_t plane = 0; plane < g.n * g.c; ++plane) {
    for (std::int64_t y = 0; y < g.oh; ++y) {
      for (std::int64_t x = 0; x < g.ow; ++x) {
        // The first cell is taken unconditionally, so that a NaN never leaves the window without an
        // index.
        T best = std::numeric_limits<T>::lowest();
        std::uint16_t where = kNoCell;
        for (std::int64_t ky = 0; ky < g.kh; ++ky) {
          for (std::int64_t kx = 0; kx < g.kw; ++kx) {
            const std::int64_t sy = y * g.sh - g.ph + ky;
            const std::int64_t sx = x * g.sw - g.pw + kx;
            if (sy < 0 || sy >= g.ih || sx < 0 || sx >= g.iw) continue;
            const T value = src[(plane * g.ih + sy) * g.iw + sx];
            if (where == kNoCell || value > best) {
              best = value;
              where = static_cast<std::uint16_t>(ky * g.kw + kx);
            }
          }
        }
        const std::int64_t out = (plane * g.oh + y) * g.ow + x;
        dst[out] = best;
        index[out] = where;
      }
    }
  }
}

/// diff_src at the cell named by `index` += diff_dst.
template <class T>
void max_pool_backward(const PoolGeometry& g, const T* diff_dst, const std::uint16_t* index,
                       T* diff_src) {
  for (std::int64_t plane = 0; plane < g.n * g.c; ++plane) {
    for (std::int64_t y = 0; y < g.oh; ++y) {
      for (std::int64_t x = 0; x < g.ow; ++x) {
        const std::int64_t out = (plane * g.oh + y) * g.ow + x;
        if (index[out] == kNoCell) continue;
        const std::int64_t sy = y * g.sh - g.ph + index[out] / g.kw;
        const std::int64_t sx = x * g.sw - g.pw + index[out] % g.kw;
        diff_src[(plane * g.ih + sy) * g.iw + sx] += diff_dst[out];
      }
    }
  }
}

/// maxpool_depth: dst[g] = max over channels g, g + oc, g + 2 oc, ... < c; index = how many times
/// oc was added (first maximum). src [n, c, spatial], dst and index [n, oc, spatial], 1 <= oc <= c.
template <class T>
void max_pool_depth_forward(std::int64_t n, std::int64_t c, std::int64_t oc, std::int64_t spatial,
                            const T* src, T* dst, std::uint16_t* index) {
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t o = 0; o < oc; ++o) {
      for (std::int64_t s = 0; s < spatial; ++s) {
        std::int64_t best = o;
        for (std::int64_t k = o + oc; k < c; k += oc) {
          if (src[(b * c + k) * spatial + s] > src[(b * c + best) * spatial + s]) best = k;
        }
        const std::int64_t out = (b * oc + o) * spatial + s;
        dst[out] = src[(b * c + best) * spatial + s];
        index[out] = static_cast<std::uint16_t>(best / oc);
      }
    }
  }
}

template <class T>
void max_pool_depth_backward(std::int64_t n, std::int64_t c, std::int64_t oc, std::int64_t spatial,
                             const T* diff_dst, const std::uint16_t* index, T* diff_src) {
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t o = 0; o < oc; ++o) {
      for (std::int64_t s = 0; s < spatial; ++s) {
        const std::int64_t out = (b * oc + o) * spatial + s;
        diff_src[(b * c + o + index[out] * oc) * spatial + s] += diff_dst[out];
      }
    }
  }
}

}  // namespace lantern::ops::ref
