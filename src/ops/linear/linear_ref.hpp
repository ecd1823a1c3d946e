#pragma once

#include <cstdint>

// Reference fully connected layer, y = W x + b. x [n, in], weights [out, in], y [n, out], bias
// [out] or null. Backward functions ADD into their outputs.

namespace lantern::ops::ref {

template <class T>
void linear_forward(std::int64_t n, std::int64_t in, std::int64_t out, const T* x, const T* weights,
                    const T* bias, T* y) {
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t o = 0; o < out; ++o) {
      T sum = bias != nullptr ? bias[o] : T(0);
      for (std::int64_t i = 0; i < in; ++i) sum += weights[o * in + i] * x[b * in + i];
      y[b * out + o] = sum;
    }
  }
}

/// diff_x += W^T diff_y.
template <class T>
void linear_backward_data(std::int64_t n, std::int64_t in, std::int64_t out, const T* diff_y,
                          const T* weights, T* diff_x) {
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t i = 0; i < in; ++i) {
        diff_x[b * in + i] += weights[o * in + i] * diff_y[b * out + o];
      }
    }
  }
}

/// diff_weights += diff_y x^T, diff_bias (may be null) += sum of diff_y over the batch.
template <class T>
void linear_backward_weights(std::int64_t n, std::int64_t in, std::int64_t out, const T* x,
                             const T* diff_y, T* diff_weights, T* diff_bias) {
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t i = 0; i < in; ++i) {
        diff_weights[o * in + i] += diff_y[b * out + o] * x[b * in + i];
      }
      if (diff_bias != nullptr) diff_bias[o] += diff_y[b * out + o];
    }
  }
}

}  // namespace lantern::ops::ref
