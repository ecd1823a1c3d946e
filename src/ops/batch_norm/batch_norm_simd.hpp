#pragma once

#include <algorithm>
#include <cmath>

#include "ops/activation/activation_simd.hpp"
#include "ops/batch_norm/batch_norm.hpp"
#include "ops/batch_norm/batch_norm_kernels.hpp"
#include "ops/blocks.hpp"
#include "ops/simd.hpp"

// What the batch normalisation kernels, with and without a pool behind them, are made of.
namespace lantern::ops::batch_norm {

inline int lanes_used(const Extents& e, std::int64_t cb) {
  return static_cast<int>(std::min<std::int64_t>(e.block, e.c - cb * e.block));
}

inline double* partial_of(double* partial, const Extents& e, std::int64_t image,
                          std::int64_t segment, std::int64_t cb) {
  return partial + (image * e.segments() + segment) * 2 * e.padded() + cb * e.block;
}

// Adds all partial sums in image order; finish(channel, first sum, second sum).
template <typename Finish>
void combine(const Extents& e, const double* partial, std::int64_t images, Finish finish) {
  const std::int64_t parts = images * e.segments();
  for (std::int64_t c = 0; c < e.c; ++c) {
    double first = 0;
    double second = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      first += partial[part * 2 * e.padded() + c];
      second += partial[part * 2 * e.padded() + e.padded() + c];
    }
    finish(c, first, second);
  }
}

// One channel block in vectors: xhat = (x - mean) * invstd, z = xhat * gamma + beta. Padding lanes
// are zero.
template <int B>
struct ChannelBlock {
  typename Vec<B>::Float mean{}, invstd{}, gamma{}, beta{};
  typename Vec<B>::Int used;

  ChannelBlock(const Channels& channels, const Extents& e, std::int64_t cb)
      : used(lane_mask<B>(lanes_used(e, cb))) {
    for (int lane = 0; lane < lanes_used(e, cb); ++lane) {
      const std::int64_t c = cb * B + lane;
      mean[lane] = channels.mean[c];
      invstd[lane] = 1.0F / std::sqrt(channels.variance[c] + kBatchNormEpsilon);
      gamma[lane] = channels.gamma[c];
      beta[lane] = channels.beta[c];
    }
  }
  typename Vec<B>::Float xhat(typename Vec<B>::Float x) const { return (x - mean) * invstd; }
  typename Vec<B>::Float z(typename Vec<B>::Float x) const { return xhat(x) * gamma + beta; }
};

// The gradient behind the activation, with z recomputed from x by the same arithmetic as forward.
template <int B, typename Act>
inline typename Vec<B>::Float behind_activation(Act act, const ChannelBlock<B>& block,
                                                typename Vec<B>::Float dy,
                                                typename Vec<B>::Float x) {
  if (act() == Activation::kLinear) return dy;
  const auto z = block.z(x);
  return dy *
         activation_slope<B>(act(), z, derivative_from_output(act()) ? activate<B>(act(), z) : z);
}

template <typename Body>
void with_block_and_activation(const Extents& e, Activation activation, Body body) {
  with_block(e.block,
             [&](auto b) { with_activation(activation, [&](auto act) { body(b, act); }); });
}

}  // namespace lantern::ops::batch_norm
