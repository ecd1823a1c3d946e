#pragma once

#include <cstring>

#include "ops/activation/activation_simd.hpp"

namespace lantern::ops {

/// The first `used` lanes of memory that may end there, zero beyond.
template <int B>
inline typename Vec<B>::Float load_lanes(const float* p, int used) {
  typename Vec<B>::Float value = {};
  std::memcpy(&value, p, static_cast<std::size_t>(used) * sizeof(float));
  return value;
}

/// An Epilogue on one vector of sums; `act` gives its first activation, `residual` may be null,
/// lanes from `used` on become zero.
template <int B, typename Act>
inline typename Vec<B>::Float finished(Act act, Activation last, typename Vec<B>::Float sums,
                                       const float* residual, int used) {
  auto value = activate<B>(act(), sums);
  if (residual != nullptr) value += load<B>(residual);
  if (last != Activation::kLinear) value = activate<B>(last, value);
  if (used < B) value = select<B>(lane_mask<B>(used), value, typename Vec<B>::Float{});
  return value;
}

}  // namespace lantern::ops
