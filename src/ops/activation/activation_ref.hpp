#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ops/activation/activation.hpp"

// Reference activations: the formulas of the cfg format in plain loops, for float and double.
// Tensors are NCHW, `spatial` = H * W. Every backward function ADDS into its outputs, and `diff_*`
// is linear in the direction passed in, so that the sign convention of the caller does not matter.

namespace lantern::ops::ref {

/// 1e-4 is part of the denominator of the normalize_channels kinds.
inline constexpr double kNormalizeChannelsEpsilon = 1e-4;

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

/// ln(1 + e^x), with the two shortcuts of the format beyond +-20.
template <class T>
T softplus(T x) {
  if (x > T(20)) return x;
  if (x < T(-20)) return std::exp(x);
  return std::log1p(std::exp(x));
}

/// y = f(x) of the pointwise kinds; the kinds that mix channels return x (see activate_channels).
template <class T>
T activate(Activation activation, T x) {
  switch (activation) {
    case Activation::kLinear:
      return x;
    case Activation::kLeaky:
    case Activation::kRevleaky:
      return x > T(0) ? x : T(0.1) * x;
    case Activation::kRelu:
      return x > T(0) ? x : T(0);
    case Activation::kRelu6:
      return std::min(std::max(x, T(0)), T(6));
    case Activation::kRelie:
      return x > T(0) ? x : T(0.01) * x;
    case Activation::kRamp:
      return std::max(x, T(0)) + T(0.1) * x;
    case Activation::kLogistic:
      return sigmoid(x);
    case Activation::kLoggy:
      return T(2) * sigmoid(x) - T(1);
    case Activation::kTanh:
      return T(2) / (T(1) + std::exp(T(-2) * x)) - T(1);
    case Activation::kElu:
      return x >= T(0) ? x : std::expm1(x);
    case Activation::kSelu:
      return x >= T(0) ? T(1.0507) * x : T(1.0507 * 1.6732) * std::expm1(x);
    case Activation::kGelu:
      return T(0.5) * x * (T(1) + std::tanh(T(0.797885) * x + T(0.035677) * x * x * x));
    case Activation::kSwish:
      return x * sigmoid(x);
    case Activation::kMish:
      return x * std::tanh(softplus(x));
    case Activation::kHardMish:
      if (x > T(0)) return x;
      return x > T(-2) ? x * x / T(2) + x : T(0);
    case Activation::kPlse:
      if (x < T(-4)) return T(0.01) * (x + T(4));
      if (x > T(4)) return T(0.01) * (x - T(4)) + T(1);
      return T(0.125) * x + T(0.5);
    case Activation::kHardtan:
      return std::min(std::max(x, T(-1)), T(1));
    case Activation::kLhtan:
      if (x < T(0)) return T(0.001) * x;
      return x > T(1) ? T(0.001) * (x - T(1)) + T(1) : x;
    case Activation::kStair: {
      const T n = std::floor(x);
      const T half = std::floor(x / T(2));
      const bool is_even = n == T(2) * std::floor(n / T(2));
      return is_even ? half : (x - n) + half;
    }
    case Activation::kNormalizeChannels:
    case Activation::kNormalizeChannelsSoftmax:
    case Activation::kNormalizeChannelsSoftmaxMaxval:
      return x;
  }
  return x;
}

/// dy/dx of the pointwise kinds. gelu, swish, mish and hard_mish read x, all others only y =
/// activate(activation, x). Darknet: gelu's derivative is taken at y; here at x. revleaky is leaky.
template <class T>
T activation_gradient(Activation activation, T x, T y) {
  switch (activation) {
    case Activation::kLinear:
      return T(1);
    case Activation::kLeaky:
    case Activation::kRevleaky:
      return y > T(0) ? T(1) : T(0.1);
    case Activation::kRelu:
      return y > T(0) ? T(1) : T(0);
    case Activation::kRelu6:
      return y > T(0) && y < T(6) ? T(1) : T(0);
    case Activation::kRelie:
      return y > T(0) ? T(1) : T(0.01);
    case Activation::kRamp:
      return (y > T(0) ? T(1) : T(0)) + T(0.1);
    case Activation::kLogistic:
      return y * (T(1) - y);
    case Activation::kLoggy: {
      const T u = (y + T(1)) / T(2);
      return T(2) * u * (T(1) - u);
    }
    case Activation::kTanh:
      return T(1) - y * y;
    case Activation::kElu:
      return y >= T(0) ? T(1) : y + T(1);
    case Activation::kSelu:
      return y >= T(0) ? T(1.0507) : y + T(1.0507 * 1.6732);
    case Activation::kGelu: {
      const T w = std::tanh(T(0.797885) * x + T(0.035677) * x * x * x);
      const T slope = T(0.797885) + T(3 * 0.035677) * x * x;
      return T(0.5) * (T(1) + w) + T(0.5) * x * (T(1) - w * w) * slope;
    }
    case Activation::kSwish: {
      const T s = sigmoid(x);
      const T value = x * s;
      return value + s * (T(1) - value);
    }
    case Activation::kMish: {
      const T w = std::tanh(softplus(x));
      return w + x * (T(1) - w * w) * sigmoid(x);
    }
    case Activation::kHardMish:
      if (x > T(0)) return T(1);
      return x > T(-2) ? x + T(1) : T(0);
    case Activation::kPlse:
      return y < T(0) || y > T(1) ? T(0.01) : T(0.125);
    case Activation::kHardtan:
      return y > T(-1) && y < T(1) ? T(1) : T(0);
    case Activation::kLhtan:
      return y > T(0) && y < T(1) ? T(1) : T(0.001);
    case Activation::kStair:
      return y == std::floor(y) ? T(0) : T(1);
    case Activation::kNormalizeChannels:
    case Activation::kNormalizeChannelsSoftmax:
    case Activation::kNormalizeChannelsSoftmaxMaxval:
      return T(1);
  }
  return T(1);
}

/// First channel with the largest value of one pixel; `stride` between channels.
template <class T>
std::int64_t argmax_channel(const T* x, std::int64_t c, std::int64_t stride) {
  std::int64_t best = 0;
  for (std::int64_t k = 1; k < c; ++k) {
    if (x[k * stride] > x[best * stride]) best = k;
  }
  return best;
}

/// Numerator of channel value `x`; `largest` is the pixel's maximum (used by the maxval kind only).
template <class T>
T channel_numerator(Activation activation, T x, T largest) {
  if (activation == Activation::kNormalizeChannels) return std::max(x, T(0));
  if (activation == Activation::kNormalizeChannelsSoftmax) return std::exp(x);
  return std::exp(x - largest);
}

/// 1e-4 + sum of the numerators of one pixel.
template <class T>
T channel_denominator(Activation activation, const T* x, std::int64_t c, std::int64_t stride,
                      T largest) {
  T sum = T(kNormalizeChannelsEpsilon);
  for (std::int64_t k = 0; k < c; ++k) {
    sum += ref::channel_numerator(activation, x[k * stride], largest);
  }
  return sum;
}

/// The three normalize_channels kinds, x and y [n, c, spatial].
template <class T>
void activate_channels(Activation activation, const T* x, T* y, std::int64_t n, std::int64_t c,
                       std::int64_t spatial) {
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t s = 0; s < spatial; ++s) {
      const T* px = x + b * c * spatial + s;
      T* py = y + b * c * spatial + s;
      const T largest = px[ref::argmax_channel(px, c, spatial) * spatial];
      const T sum = ref::channel_denominator(activation, px, c, spatial, largest);
      for (std::int64_t k = 0; k < c; ++k) {
        py[k * spatial] = ref::channel_numerator(activation, px[k * spatial], largest) / sum;
      }
    }
  }
}

/// Exact Jacobian, transposed: diff_x += J(x)^T diff_y. All arrays [n, c, spatial]; y is recomputed
/// from x. The maxval kind is not shift-invariant because of the 1e-4, so the first largest channel
/// m also gets
/// -(1e-4 / S) * sum_j y_j d_j, S the denominator: the part that flows through the subtracted
/// maximum.
template <class T>
void activate_channels_backward(Activation activation, const T* x, const T* diff_y, T* diff_x,
                                std::int64_t n, std::int64_t c, std::int64_t spatial) {
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t s = 0; s < spatial; ++s) {
      const std::int64_t base = b * c * spatial + s;
      const T* px = x + base;
      const std::int64_t m = ref::argmax_channel(px, c, spatial);
      const T largest = px[m * spatial];
      const T sum = ref::channel_denominator(activation, px, c, spatial, largest);
      T dot = T(0);
      for (std::int64_t k = 0; k < c; ++k) {
        const T y = ref::channel_numerator(activation, px[k * spatial], largest) / sum;
        dot += y * diff_y[base + k * spatial];
      }
      for (std::int64_t k = 0; k < c; ++k) {
        const T d = diff_y[base + k * spatial] - dot;
        T* out = diff_x + base + k * spatial;
        if (activation == Activation::kNormalizeChannels) {
          if (px[k * spatial] > T(0)) *out += d / sum;
        } else {
          *out += ref::channel_numerator(activation, px[k * spatial], largest) / sum * d;
        }
      }
      if (activation == Activation::kNormalizeChannelsSoftmaxMaxval) {
        diff_x[base + m * spatial] -= T(kNormalizeChannelsEpsilon) / sum * dot;
      }
    }
  }
}

/// Any activation on a whole tensor [n, c, spatial]. `y` may be `x` for the pointwise kinds only.
template <class T>
void activation_forward(Activation activation, const T* x, T* y, std::int64_t n, std::int64_t c,
                        std::int64_t spatial) {
  if (mixes_channels(activation)) {
    ref::activate_channels(activation, x, y, n, c, spatial);
    return;
  }
  for (std::int64_t i = 0; i < n * c * spatial; ++i) y[i] = ref::activate(activation, x[i]);
}

/// Any activation on a whole tensor: diff_x += f'(x) diff_y, from the pre-activation x.
template <class T>
void activation_backward(Activation activation, const T* x, const T* diff_y, T* diff_x,
                         std::int64_t n, std::int64_t c, std::int64_t spatial) {
  if (mixes_channels(activation)) {
    ref::activate_channels_backward(activation, x, diff_y, diff_x, n, c, spatial);
    return;
  }
  for (std::int64_t i = 0; i < n * c * spatial; ++i) {
    diff_x[i] +=
        ref::activation_gradient(activation, x[i], ref::activate(activation, x[i])) * diff_y[i];
  }
}

}  // namespace lantern::ops::ref
