#pragma once

#include <algorithm>
#include <cstdint>

// Reference pointwise ops of gated recurrent sections. Backward ADDS into its outputs; null ones
// are skipped.
namespace lantern::ops::ref {

/// dst = gate * a + (1 - gate) * b.
template <class T>
void blend_forward(std::int64_t count, const T* gate, const T* a, const T* b, T* dst) {
  for (std::int64_t i = 0; i < count; ++i) dst[i] = gate[i] * a[i] + (T(1) - gate[i]) * b[i];
}

template <class T>
void blend_backward(std::int64_t count, const T* gate, const T* a, const T* b, const T* diff_dst,
                    T* diff_gate, T* diff_a, T* diff_b) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (diff_gate != nullptr) diff_gate[i] += diff_dst[i] * (a[i] - b[i]);
    if (diff_a != nullptr) diff_a[i] += diff_dst[i] * gate[i];
    if (diff_b != nullptr) diff_b[i] += diff_dst[i] * (T(1) - gate[i]);
  }
}

/// dst = src clamped to [-limit, limit].
template <class T>
void clamp_forward(std::int64_t count, T limit, const T* src, T* dst) {
  for (std::int64_t i = 0; i < count; ++i) dst[i] = std::clamp(src[i], -limit, limit);
}

template <class T>
void clamp_backward(std::int64_t count, T limit, const T* src, const T* diff_dst, T* diff_src) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (src[i] >= -limit && src[i] <= limit) diff_src[i] += diff_dst[i];
  }
}

}  // namespace lantern::ops::ref
