#pragma once

#include <cstdint>

#include "ops/conv/conv_geometry.hpp"

// Reference convolution (cross-correlation) in plain loops. Backward functions ADD into their
// outputs.

namespace lantern::ops::ref {

/// Calls visit(src_index, weight_index, dst_index) for every product of the convolution, so that
/// forward and both backward directions are the same list of products.
template <class Visit>
void for_each_product(const ConvGeometry& g, Visit visit) {
  const std::int64_t ic_group = g.ic / g.groups;
  const std::int64_t oc_group = g.oc / g.groups;
  for (std::int64_t b = 0; b < g.n; ++b) {
    for (std::int64_t o = 0; o < g.oc; ++o) {
      const std::int64_t first_channel = o / oc_group * ic_group;
      for (std::int64_t y = 0; y < g.oh; ++y) {
        for (std::int64_t x = 0; x < g.ow; ++x) {
          const std::int64_t dst_index = ((b * g.oc + o) * g.oh + y) * g.ow + x;
          for (std::int64_t c = 0; c < ic_group; ++c) {
            for (std::int64_t ky = 0; ky < g.kh; ++ky) {
              const std::int64_t sy = y * g.sh - g.ph + ky * g.dh;
              if (sy < 0 || sy >= g.ih) continue;
              for (std::int64_t kx = 0; kx < g.kw; ++kx) {
                const std::int64_t sx = x * g.sw - g.pw + kx * g.dw;
                if (sx < 0 || sx >= g.iw) continue;
                const std::int64_t plane = b * g.ic + first_channel + c;
                visit((plane * g.ih + sy) * g.iw + sx, ((o * ic_group + c) * g.kh + ky) * g.kw + kx,
                      dst_index);
              }
            }
          }
        }
      }
    }
  }
}

/// dst = conv(src, weights) + bias. src [n, ic, ih, iw], weights [oc, ic/groups, kh, kw], bias [oc]
/// or null.
template <class T>
void conv_forward(const ConvGeometry& g, const T* src, const T* weights, const T* bias, T* dst) {
  const std::int64_t spatial = g.oh * g.ow;
  for (std::int64_t i = 0; i < g.n * g.oc * spatial; ++i) {
    dst[i] = bias != nullptr ? bias[i / spatial % g.oc] : T(0);
  }
  for_each_product(
      g, [&](std::int64_t s, std::int64_t w, std::int64_t d) { dst[d] += src[s] * weights[w]; });
}

/// diff_src += transposed convolution of diff_dst.
template <class T>
void conv_backward_data(const ConvGeometry& g, const T* diff_dst, const T* weights, T* diff_src) {
  ref::for_each_product(g, [&](std::int64_t s, std::int64_t w, std::int64_t d) {
    diff_src[s] += diff_dst[d] * weights[w];
  });
}

/// diff_weights += correlation of src and diff_dst; diff_bias (may be null) += sum of diff_dst per
/// channel.
template <class T>
void conv_backward_weights(const ConvGeometry& g, const T* src, const T* diff_dst, T* diff_weights,
                           T* diff_bias) {
  ref::for_each_product(g, [&](std::int64_t s, std::int64_t w, std::int64_t d) {
    diff_weights[w] += diff_dst[d] * src[s];
  });
  if (diff_bias == nullptr) return;
  const std::int64_t spatial = g.oh * g.ow;
  for (std::int64_t i = 0; i < g.n * g.oc * spatial; ++i) {
    diff_bias[i / spatial % g.oc] += diff_dst[i];
  }
}

}  // namespace lantern::ops::ref
