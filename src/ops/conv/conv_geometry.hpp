#pragma once

#include <cstdint>

namespace lantern::ops {

/// One convolution (cross-correlation). src [n, ic, ih, iw], weights [oc, ic/groups, kh, kw], dst
/// [n, oc, oh, ow]. dst[y][x] reads src[y*sh - ph + ky*dh][x*sw - pw + kx*dw], zero outside; `ph`,
/// `pw` are the real top and left padding (a cfg's padding times its dilation), and oh, ow are
/// given: bottom and right padding follow from them.
struct ConvGeometry {
  std::int64_t n = 1, ic = 1, ih = 1, iw = 1;
  std::int64_t oc = 1, oh = 1, ow = 1;
  std::int64_t groups = 1;
  std::int64_t kh = 1, kw = 1, sh = 1, sw = 1, ph = 0, pw = 0, dh = 1, dw = 1;

  std::int64_t weights_count() const { return oc * (ic / groups) * kh * kw; }
  /// Multiply-adds count twice.
  double flops() const {
    return 2.0 * static_cast<double>(n * oh * ow) * static_cast<double>(weights_count());
  }
  bool operator==(const ConvGeometry&) const = default;
};

/// Pooling window. dst[y][x] covers src rows y*sh - ph .. + kh - 1; cells outside are ignored.
struct PoolGeometry {
  std::int64_t n = 1, c = 1, ih = 1, iw = 1, oh = 1, ow = 1;
  std::int64_t kh = 1, kw = 1, sh = 1, sw = 1, ph = 0, pw = 0;
  bool operator==(const PoolGeometry&) const = default;
};

}  // namespace lantern::ops
