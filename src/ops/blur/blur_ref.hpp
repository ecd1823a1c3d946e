#pragma once

#include <cstdint>

// The fixed depthwise blur of `antialiasing` (reference/layers.md 4.1). Backward ADDS into
// diff_src.

namespace lantern::ops::ref {

enum class BlurKind : std::uint8_t {
  kBinomial,  ///< 3x3 [1 2 1; 2 4 2; 1 2 1] / 16, one cell of zero padding
  kBox,       ///< 2x2 of 1/4, no padding
};

struct BlurGeometry {
  BlurKind kind = BlurKind::kBinomial;
  std::int64_t n = 1, c = 1, ih = 1, iw = 1, sh = 1, sw = 1;

  std::int64_t size() const { return kind == BlurKind::kBinomial ? 3 : 2; }
  std::int64_t pad() const { return kind == BlurKind::kBinomial ? 1 : 0; }
  std::int64_t oh() const { return (ih + 2 * pad() - size()) / sh + 1; }
  std::int64_t ow() const { return (iw + 2 * pad() - size()) / sw + 1; }
  /// Weight of a row or column of the kernel; a cell has the product of both.
  double weight(std::int64_t k) const { return kind == BlurKind::kBox ? 0.5 : k == 1 ? 0.5 : 0.25; }
};

/// Calls visit(index in src, index in dst, weight) for every product of the sum.
template <class Visit>
void for_each_blur_product(const BlurGeometry& g, Visit visit) {
  for (std::int64_t i = 0; i < g.n * g.c * g.oh() * g.ow(); ++i) {
    const std::int64_t plane = i / (g.oh() * g.ow());
    for (std::int64_t ky = 0; ky < g.size(); ++ky) {
      for (std::int64_t kx = 0; kx < g.size(); ++kx) {
        const std::int64_t y = i / g.ow() % g.oh() * g.sh - g.pad() + ky;
        const std::int64_t x = i % g.ow() * g.sw - g.pad() + kx;
        if (y < 0 || x < 0 || y >= g.ih || x >= g.iw) continue;
        visit((plane * g.ih + y) * g.iw + x, i, g.weight(ky) * g.weight(kx));
      }
    }
  }
}

template <class T>
void blur_forward(const BlurGeometry& g, const T* src, T* dst) {
  for (std::int64_t i = 0; i < g.n * g.c * g.oh() * g.ow(); ++i) dst[i] = T(0);
  for_each_blur_product(g, [&](std::int64_t s, std::int64_t d, double weight) {
    dst[d] += static_cast<T>(weight) * src[s];
  });
}

template <class T>
void blur_backward(const BlurGeometry& g, const T* diff_dst, T* diff_src) {
  for_each_blur_product(g, [&](std::int64_t s, std::int64_t d, double weight) {
    diff_src[s] += static_cast<T>(weight) * diff_dst[d];
  });
}

}  // namespace lantern::ops::ref
