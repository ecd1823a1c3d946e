#pragma once

#include <cstdint>

// Reference convolution with weights of its own at every output position. Backward functions ADD
// into their outputs.

namespace lantern::ops::ref {

/// src [n, c, ih, iw], weights [oh * ow][filters][c][size][size], bias and dst [filters, oh, ow].
/// dst[y][x] reads src[y * stride - pad + ky][x * stride - pad + kx], zero outside.
struct LocalGeometry {
  std::int64_t n = 1, c = 1, ih = 1, iw = 1;
  std::int64_t filters = 1, oh = 1, ow = 1;
  std::int64_t size = 1, stride = 1, pad = 0;

  std::int64_t locations() const { return oh * ow; }
  std::int64_t taps() const { return c * size * size; }  ///< weights of one filter at one position
  std::int64_t weights_count() const { return locations() * filters * taps(); }
  std::int64_t src_image() const { return c * ih * iw; }
  std::int64_t dst_image() const { return filters * locations(); }

  /// Index within an image of what tap (c, ky, kx) reads at a position, or -1 outside.
  std::int64_t source(std::int64_t location, std::int64_t tap) const {
    const std::int64_t y = location / ow * stride - pad + tap / size % size;
    const std::int64_t x = location % ow * stride - pad + tap % size;
    if (y < 0 || x < 0 || y >= ih || x >= iw) return -1;
    return (tap / (size * size) * ih + y) * iw + x;
  }
};

/// Calls visit(index in src, index in weights, index in dst) for every product of the sum.
template <class Visit>
void for_each_local_product(const LocalGeometry& g, Visit visit) {
  for (std::int64_t b = 0; b < g.n; ++b) {
    for (std::int64_t location = 0; location < g.locations(); ++location) {
      for (std::int64_t f = 0; f < g.filters; ++f) {
        for (std::int64_t tap = 0; tap < g.taps(); ++tap) {
          const std::int64_t source = g.source(location, tap);
          if (source < 0) continue;
          visit(b * g.src_image() + source, (location * g.filters + f) * g.taps() + tap,
                b * g.dst_image() + f * g.locations() + location);
        }
      }
    }
  }
}

template <class T>
void local_forward(const LocalGeometry& g, const T* src, const T* weights, const T* bias, T* dst) {
  for (std::int64_t i = 0; i < g.n * g.dst_image(); ++i) dst[i] = bias[i % g.dst_image()];
  for_each_local_product(
      g, [&](std::int64_t s, std::int64_t w, std::int64_t d) { dst[d] += src[s] * weights[w]; });
}

template <class T>
void local_backward_data(const LocalGeometry& g, const T* diff_dst, const T* weights, T* diff_src) {
  for_each_local_product(g, [&](std::int64_t s, std::int64_t w, std::int64_t d) {
    diff_src[s] += diff_dst[d] * weights[w];
  });
}

template <class T>
void local_backward_weights(const LocalGeometry& g, const T* src, const T* diff_dst,
                            T* diff_weights, T* diff_bias) {
  for_each_local_product(g, [&](std::int64_t s, std::int64_t w, std::int64_t d) {
    diff_weights[w] += diff_dst[d] * src[s];
  });
  for (std::int64_t i = 0; i < g.n * g.dst_image(); ++i)
    diff_bias[i % g.dst_image()] += diff_dst[i];
}

}  // namespace lantern::ops::ref
