#pragma once

#include <cstdint>

// Reference products of two maps ([scale_channels], [sam]), without the activation. Backward ADDS
// into both inputs.

namespace lantern::ops::ref {

/// What one value of `scale` multiplies.
enum class ScaleKind : std::uint8_t {
  kPerChannel,  ///< scale_wh=0: scale [n, c]
  kPerPixel,    ///< scale_wh=1: scale [n, spatial]
  kElement,     ///< sam: scale [n, c, spatial]
};

/// Index into `scale` of element i of `src` [n, c, spatial].
inline std::int64_t scale_index(ScaleKind kind, std::int64_t c, std::int64_t spatial,
                                std::int64_t i) {
  if (kind == ScaleKind::kElement) return i;
  if (kind == ScaleKind::kPerChannel) return i / spatial;
  return i / (c * spatial) * spatial + i % spatial;
}

/// dst [n, c, spatial] = src * scale. In a cfg `src` is the layer named by `from`, `scale` the
/// previous layer.
template <class T>
void scale_forward(ScaleKind kind, std::int64_t n, std::int64_t c, std::int64_t spatial,
                   const T* src, const T* scale, T* dst) {
  for (std::int64_t i = 0; i < n * c * spatial; ++i) {
    dst[i] = src[i] * scale[scale_index(kind, c, spatial, i)];
  }
}

/// diff_src += d * scale, diff_scale += sum of d * src. Either may be null.
/// Darknet: divides the scale_wh=1 gradient by W * H on the GPU only; here it is the exact sum.
template <class T>
void scale_backward(ScaleKind kind, std::int64_t n, std::int64_t c, std::int64_t spatial,
                    const T* src, const T* scale, const T* diff_dst, T* diff_src, T* diff_scale) {
  for (std::int64_t i = 0; i < n * c * spatial; ++i) {
    const std::int64_t j = scale_index(kind, c, spatial, i);
    if (diff_src != nullptr) diff_src[i] += diff_dst[i] * scale[j];
    if (diff_scale != nullptr) diff_scale[j] += diff_dst[i] * src[i];
  }
}

}  // namespace lantern::ops::ref
