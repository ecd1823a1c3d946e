#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/conv/conv_geometry.hpp"

// Reference average pooling, global and local. Backward ADDS into diff_src.

namespace lantern::ops::ref {

/// dst [n, c] = mean of src [n, c, spatial].
template <class T>
void global_avg_pool_forward(std::int64_t n, std::int64_t c, std::int64_t spatial, const T* src,
                             T* dst) {
  for (std::int64_t plane = 0; plane < n * c; ++plane) {
    double sum = 0;
    for (std::int64_t s = 0; s < spatial; ++s) sum += src[plane * spatial + s];
    dst[plane] = static_cast<T>(sum / static_cast<double>(spatial));
  }
}

template <class T>
void global_avg_pool_backward(std::int64_t n, std::int64_t c, std::int64_t spatial,
                              const T* diff_dst, T* diff_src) {
  for (std::int64_t i = 0; i < n * c * spatial; ++i) {
    diff_src[i] += diff_dst[i / spatial] / static_cast<T>(spatial);
  }
}

/// Rows and columns of one window that lie inside src, half open.
struct WindowSpan {
  std::int64_t top, bottom, left, right;
  std::int64_t cells() const {
    return std::max<std::int64_t>(bottom - top, 0) * std::max<std::int64_t>(right - left, 0);
  }
};

inline WindowSpan valid_window(const PoolGeometry& g, std::int64_t y, std::int64_t x) {
  return {std::max<std::int64_t>(y * g.sh - g.ph, 0), std::min(y * g.sh - g.ph + g.kh, g.ih),
          std::max<std::int64_t>(x * g.sw - g.pw, 0), std::min(x * g.sw - g.pw + g.kw, g.iw)};
}

/// dst = mean over the cells of the window that lie inside src; 0 where there is none.
template <class T>
void local_avg_pool_forward(const PoolGeometry& g, const T* src, T* dst) {
  for (std::int64_t plane = 0; plane < g.n * g.c; ++plane) {
    for (std::int64_t y = 0; y < g.oh; ++y) {
      for (std::int64_t x = 0; x < g.ow; ++x) {
        const WindowSpan window = ref::valid_window(g, y, x);
        T sum = T(0);
        for (std::int64_t sy = window.top; sy < window.bottom; ++sy) {
          for (std::int64_t sx = window.left; sx < window.right; ++sx) {
            sum += src[(plane * g.ih + sy) * g.iw + sx];
          }
        }
        const std::int64_t cells = window.cells();
        dst[(plane * g.oh + y) * g.ow + x] = cells > 0 ? sum / static_cast<T>(cells) : T(0);
      }
    }
  }
}

/// Every valid cell += diff_dst / number of valid cells. Darknet: k * k (CPU) or the covering
/// windows (GPU).
template <class T>
void local_avg_pool_backward(const PoolGeometry& g, const T* diff_dst, T* diff_src) {
  for (std::int64_t plane = 0; plane < g.n * g.c; ++plane) {
    for (std::int64_t y = 0; y < g.oh; ++y) {
      for (std::int64_t x = 0; x < g.ow; ++x) {
        const WindowSpan window = ref::valid_window(g, y, x);
        if (window.cells() == 0) continue;
        const T share = diff_dst[(plane * g.oh + y) * g.ow + x] / static_cast<T>(window.cells());
        for (std::int64_t sy = window.top; sy < window.bottom; ++sy) {
          for (std::int64_t sx = window.left; sx < window.right; ++sx) {
            diff_src[(plane * g.ih + sy) * g.iw + sx] += share;
          }
        }
      }
    }
  }
}

}  // namespace lantern::ops::ref
