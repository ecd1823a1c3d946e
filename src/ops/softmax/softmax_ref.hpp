#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

// Reference softmax and its cross-entropy. Backward ADDS into diff_x.

namespace lantern::ops::ref {

/// Truth value of a tree entry without loss (exactly representable).
inline constexpr double kMaskedTruth = -1234;

/// y = softmax(x / temperature) over `count` values that lie `stride` apart; the maximum is
/// subtracted.
template <class T>
void softmax_one(const T* x, T* y, std::int64_t count, std::int64_t stride, T temperature) {
  T largest = x[0];
  for (std::int64_t i = 1; i < count; ++i) largest = std::max(largest, x[i * stride]);
  T sum = T(0);
  for (std::int64_t i = 0; i < count; ++i) {
    y[i * stride] = std::exp((x[i * stride] - largest) / temperature);
    sum += y[i * stride];
  }
  for (std::int64_t i = 0; i < count; ++i) y[i * stride] /= sum;
}

/// diff_x += J^T diff_y of softmax_one: y_i (d_i - sum_j y_j d_j) / temperature.
template <class T>
void softmax_one_backward(const T* y, const T* diff_y, T* diff_x, std::int64_t count,
                          std::int64_t stride, T temperature) {
  T dot = T(0);
  for (std::int64_t i = 0; i < count; ++i) dot += y[i * stride] * diff_y[i * stride];
  for (std::int64_t i = 0; i < count; ++i) {
    diff_x[i * stride] += y[i * stride] * (diff_y[i * stride] - dot) / temperature;
  }
}

/// x, y [n, inputs]: per sample one softmax for each consecutive group; `sizes` sum to `inputs`
/// (sibling groups of a tree, or `groups` equal parts).
template <class T>
void softmax_forward(std::int64_t n, std::int64_t inputs, std::span<const std::int64_t> sizes,
                     T temperature, const T* x, T* y) {
  for (std::int64_t b = 0; b < n; ++b) {
    std::int64_t at = b * inputs;
    for (const std::int64_t size : sizes) {
      softmax_one(x + at, y + at, size, 1, temperature);
      at += size;
    }
  }
}

template <class T>
void softmax_backward(std::int64_t n, std::int64_t inputs, std::span<const std::int64_t> sizes,
                      T temperature, const T* y, const T* diff_y, T* diff_x) {
  for (std::int64_t b = 0; b < n; ++b) {
    std::int64_t at = b * inputs;
    for (const std::int64_t size : sizes) {
      softmax_one_backward(y + at, diff_y + at, diff_x + at, size, 1, temperature);
      at += size;
    }
  }
}

/// spatial=1: one softmax over the channels of every pixel, x and y [n, c, spatial].
template <class T>
void softmax_spatial_forward(std::int64_t n, std::int64_t c, std::int64_t spatial, T temperature,
                             const T* x, T* y) {
  for (std::int64_t i = 0; i < n * spatial; ++i) {
    const std::int64_t at = i / spatial * c * spatial + i % spatial;
    softmax_one(x + at, y + at, c, spatial, temperature);
  }
}

template <class T>
void softmax_spatial_backward(std::int64_t n, std::int64_t c, std::int64_t spatial, T temperature,
                              const T* y, const T* diff_y, T* diff_x) {
  for (std::int64_t i = 0; i < n * spatial; ++i) {
    const std::int64_t at = i / spatial * c * spatial + i % spatial;
    softmax_one_backward(y + at, diff_y + at, diff_x + at, c, spatial, temperature);
  }
}

/// Cross-entropy of the softmax output p: returns -sum t ln p and writes delta = t - p (no
/// 1/temperature). Entries with truth -1234 have neither. p is not let below the smallest normal
/// number, so the cost stays finite. Darknet: prints -sum ln p over t != 0, which ignores the
/// truth's value.
template <class T>
double softmax_loss(std::int64_t count, const T* p, const T* truth, T* delta) {
  double cost = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (truth[i] == T(kMaskedTruth)) {
      delta[i] = T(0);
      continue;
    }
    delta[i] = truth[i] - p[i];
    if (truth[i] != T(0)) {
      cost -= static_cast<double>(truth[i]) *
              std::log(static_cast<double>(std::max(p[i], std::numeric_limits<T>::min())));
    }
  }
  return cost;
}

}  // namespace lantern::ops::ref
