#pragma once

#include <cstdint>

// Reference dropout with a given mask, plain and DropBlock alike. Backward is the same map and ADDS
// into diff_src.

namespace lantern::ops::ref {

/// Bit i of a mask, least significant bit of byte 0 first; 1 = kept.
inline bool mask_bit(const std::uint8_t* bits, std::int64_t i) {
  return ((bits[i / 8] >> (i % 8)) & 1U) != 0;
}

/// dst = src * factor; `factors` holds 0 for a dropped element and 1/(1-p) for a kept one.
template <class T>
void dropout_forward(std::int64_t count, const T* factors, const T* src, T* dst) {
  for (std::int64_t i = 0; i < count; ++i) dst[i] = src[i] * factors[i];
}

template <class T>
void dropout_backward(std::int64_t count, const T* factors, const T* diff_dst, T* diff_src) {
  for (std::int64_t i = 0; i < count; ++i) diff_src[i] += diff_dst[i] * factors[i];
}

/// Mask as bits over the flat index of [n, outputs], scale [n] per sample: 1/(1-p) of plain
/// dropout, 1/(1 - dropped/outputs) of DropBlock.
template <class T>
void dropout_bits_forward(std::int64_t n, std::int64_t outputs, const std::uint8_t* bits,
                          const T* scale, const T* src, T* dst) {
  for (std::int64_t i = 0; i < n * outputs; ++i) {
    dst[i] = mask_bit(bits, i) ? src[i] * scale[i / outputs] : T(0);
  }
}

template <class T>
void dropout_bits_backward(std::int64_t n, std::int64_t outputs, const std::uint8_t* bits,
                           const T* scale, const T* diff_dst, T* diff_src) {
  for (std::int64_t i = 0; i < n * outputs; ++i) {
    if (mask_bit(bits, i)) diff_src[i] += diff_dst[i] * scale[i / outputs];
  }
}

/// DropBlock's scale of one sample: 1/(1 - dropped/outputs) from its mask bits [first, first +
/// outputs). 0 when everything is dropped.
template <class T>
T dropped_scale(const std::uint8_t* bits, std::int64_t first, std::int64_t outputs) {
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < outputs; ++i) kept += mask_bit(bits, first + i) ? 1 : 0;
  return kept > 0 ? static_cast<T>(static_cast<double>(outputs) / static_cast<double>(kept)) : T(0);
}

}  // namespace lantern::ops::ref
