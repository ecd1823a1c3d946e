#pragma once

#include <cstdint>

// Reference channel/space rearrangements ([reorg], [reorg3d]). They are permutations; backward is
// the inverse and ADDS into diff_src.

namespace lantern::ops::ref {

enum class ReorgKind : std::uint8_t {
  kReorg,         ///< historic order of YOLOv2; needs c % s^2 = 0, h and w multiples of s
  kSpaceToDepth,  ///< reorg3d: offset-major channels; h and w multiples of s
  kDepthToSpace,  ///< reverse=1 of both: the inverse of kSpaceToDepth; needs c % s^2 = 0
};

/// Index into one src sample [c, h, w] of element i of the dst sample: [c * s^2, h / s, w / s], for
/// kDepthToSpace [c / s^2, h * s, w * s].
inline std::int64_t reorg_source(ReorgKind kind, std::int64_t c, std::int64_t h, std::int64_t w,
                                 std::int64_t s, std::int64_t i) {
  if (kind == ReorgKind::kReorg) {
    // The buffer is written as [c, h, w] and read as a [c / s^2, h * s, w * s] tensor.
    const std::int64_t q = c / (s * s);
    const std::int64_t x = i % w;
    const std::int64_t y = i / w % h;
    const std::int64_t k = i / (w * h);
    const std::int64_t offset = k / q;
    return (k % q * (h * s) + y * s + offset / s) * (w * s) + x * s + offset % s;
  }
  if (kind == ReorgKind::kSpaceToDepth) {
    const std::int64_t ow = w / s;
    const std::int64_t oh = h / s;
    const std::int64_t x = i % ow;
    const std::int64_t y = i / ow % oh;
    const std::int64_t k = i / (ow * oh);
    const std::int64_t offset = k / c;
    return (k % c * h + y * s + offset / s) * w + x * s + offset % s;
  }
  const std::int64_t ow = w * s;
  const std::int64_t oh = h * s;
  const std::int64_t x = i % ow;
  const std::int64_t y = i / ow % oh;
  const std::int64_t k = i / (ow * oh);
  const std::int64_t offset = y % s * s + x % s;
  return ((offset * (c / (s * s)) + k) * h + y / s) * w + x / s;
}

template <class T>
void reorg_forward(ReorgKind kind, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                   std::int64_t s, const T* src, T* dst) {
  const std::int64_t size = c * h * w;
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t i = 0; i < size; ++i) {
      dst[b * size + i] = src[b * size + reorg_source(kind, c, h, w, s, i)];
    }
  }
}

/// c, h, w are those of src, as in forward.
template <class T>
void reorg_backward(ReorgKind kind, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                    std::int64_t s, const T* diff_dst, T* diff_src) {
  const std::int64_t size = c * h * w;
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t i = 0; i < size; ++i) {
      diff_src[b * size + reorg_source(kind, c, h, w, s, i)] += diff_dst[b * size + i];
    }
  }
}

}  // namespace lantern::ops::ref
