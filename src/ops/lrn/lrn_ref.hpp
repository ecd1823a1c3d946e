#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

// Reference local response normalisation. Backward ADDS into diff_x.

namespace lantern::ops::ref {

struct LrnSettings {
  double alpha = 1e-4, beta = 0.75, kappa = 1;
  std::int64_t size = 5;  ///< channels of a window

  /// Channels that the norm of channel c sums over, of `channels` (reference/layers.md 4.17).
  std::int64_t begin(std::int64_t c) const { return std::max<std::int64_t>(0, c - (size - 1) / 2); }
  std::int64_t end(std::int64_t c, std::int64_t channels) const {
    return std::min(channels, c + size / 2 + 1);
  }
  /// Channels whose norms sum channel c.
  std::int64_t readers_begin(std::int64_t c) const {
    return std::max<std::int64_t>(0, c - size / 2);
  }
  std::int64_t readers_end(std::int64_t c, std::int64_t channels) const {
    return std::min(channels, c + (size - 1) / 2 + 1);
  }
};

/// kappa + alpha * sum of squares over the window of channel c; x holds one pixel, channels
/// `stride` apart. Darknet: its sliding sum misses a channel (fault L34).
template <class T>
T lrn_norm(const LrnSettings& p, std::int64_t channels, std::int64_t stride, const T* x,
           std::int64_t c) {
  T sum = T(0);
  for (std::int64_t k = p.begin(c); k < p.end(c, channels); ++k)
    sum += x[k * stride] * x[k * stride];
  return static_cast<T>(p.kappa) + static_cast<T>(p.alpha) * sum;
}

/// y = x * norm^-beta; x, y [n, channels, spatial].
template <class T>
void lrn_forward(const LrnSettings& p, std::int64_t n, std::int64_t channels, std::int64_t spatial,
                 const T* x, T* y) {
  for (std::int64_t i = 0; i < n * spatial; ++i) {
    const std::int64_t at = i / spatial * channels * spatial + i % spatial;
    for (std::int64_t c = 0; c < channels; ++c) {
      const T norm = lrn_norm(p, channels, spatial, x + at, c);
      y[at + c * spatial] = x[at + c * spatial] * std::pow(norm, static_cast<T>(-p.beta));
    }
  }
}

/// diff_x += J^T diff_y: d_j norm_j^-beta - 2 alpha beta x_j * sum over the norms that read j of
/// d_k x_k norm_k^(-beta-1). Darknet: hands on the first term alone.
template <class T>
void lrn_backward(const LrnSettings& p, std::int64_t n, std::int64_t channels, std::int64_t spatial,
                  const T* x, const T* diff_y, T* diff_x) {
  const T beta = static_cast<T>(p.beta);
  const T factor = static_cast<T>(2 * p.alpha * p.beta);
  for (std::int64_t i = 0; i < n * spatial; ++i) {
    const std::int64_t at = i / spatial * channels * spatial + i % spatial;
    for (std::int64_t j = 0; j < channels; ++j) {
      T sum = T(0);
      for (std::int64_t k = p.readers_begin(j); k < p.readers_end(j, channels); ++k) {
        const std::int64_t place = at + k * spatial;
        sum += diff_y[place] * x[place] *
               std::pow(lrn_norm(p, channels, spatial, x + at, k), -beta - T(1));
      }
      const std::int64_t own = at + j * spatial;
      diff_x[own] += diff_y[own] * std::pow(lrn_norm(p, channels, spatial, x + at, j), -beta) -
                     factor * x[own] * sum;
    }
  }
}

}  // namespace lantern::ops::ref
