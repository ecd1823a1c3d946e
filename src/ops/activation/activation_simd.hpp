#pragma once

#include "ops/activation/activation.hpp"
#include "ops/simd.hpp"

namespace lantern::ops {

/// From here on every float is a whole number (2^23); a conversion to int would leave its range.
inline constexpr float kAllIntegers = 8388608.0F;

/// y = act(x) for the kinds that work on single values. `kind` is a constant in the loops that use
/// it, so the switch costs nothing there.
template <int B>
inline typename Vec<B>::Float activate(Activation kind, typename Vec<B>::Float x) {
  using Float = typename Vec<B>::Float;
  const Float zero = splat<B>(0.0F);
  switch (kind) {
    case Activation::kLinear:
      return x;
    case Activation::kLeaky:
    case Activation::kRevleaky:
      return x > 0.0F ? x : 0.1F * x;
    case Activation::kRelu:
      return x > 0.0F ? x : zero;
    case Activation::kRelu6:
      return min<B>(max<B>(x, zero), splat<B>(6.0F));
    case Activation::kRelie:
      return x > 0.0F ? x : 0.01F * x;
    case Activation::kRamp:
      return (x > 0.0F ? x : zero) + 0.1F * x;
    case Activation::kLogistic:
      return logistic<B>(x);
    case Activation::kLoggy:
      return 2.0F * logistic<B>(x) - 1.0F;
    case Activation::kTanh:
      return 2.0F * logistic<B>(2.0F * x) - 1.0F;
    case Activation::kElu:
      return x >= 0.0F ? x : exp<B>(x) - 1.0F;
    case Activation::kSelu:
      return x >= 0.0F ? 1.0507F * x : (1.0507F * 1.6732F) * (exp<B>(x) - 1.0F);
    case Activation::kGelu: {
      const Float a = 0.797885F * x + 0.035677F * x * x * x;
      return 0.5F * x * (2.0F * logistic<B>(2.0F * a));
    }
    case Activation::kSwish:
      return x * logistic<B>(x);
    case Activation::kMish: {
      // tanh(ln(1 + e^x)) = n / (n + 2) with n = e^2x + 2 e^x.
      const Float e = exp<B>(x > 20.0F ? splat<B>(20.0F) : x);
      const Float n = e * e + 2.0F * e;
      return x > 20.0F ? x : x * n / (n + 2.0F);
    }
    case Activation::kHardMish:
      return x > 0.0F ? x : (x > -2.0F ? 0.5F * x * x + x : zero);
    case Activation::kPlse:
      return x < -4.0F ? 0.01F * (x + 4.0F)
                       : (x > 4.0F ? 0.01F * (x - 4.0F) + 1.0F : 0.125F * x + 0.5F);
    case Activation::kHardtan:
      return min<B>(max<B>(x, splat<B>(-1.0F)), splat<B>(1.0F));
    case Activation::kLhtan:
      return x < 0.0F ? 0.001F * x : (x > 1.0F ? 0.001F * (x - 1.0F) + 1.0F : x);
    case Activation::kStair: {
      using Int = typename Vec<B>::Int;
      const auto floor_of = [](Float v) {
        const Float t = __builtin_convertvector(__builtin_convertvector(v, Int), Float);
        const Float size = v < 0.0F ? -v : v;
        return size < kAllIntegers ? (t > v ? t - 1.0F : t) : v;
      };
      const Float n = floor_of(x);
      const Float half = floor_of(x * 0.5F);
      const Int odd = __builtin_convertvector(n, Int) & 1;
      return odd != 0 ? (x - n) + half : half;
    }
    default:
      return x;
  }
}

/// dy/dx from the pre-activation x and the output y (each kind uses the one that layers.md section
/// 2 names).
template <int B>
inline typename Vec<B>::Float activation_slope(Activation kind, typename Vec<B>::Float x,
                                               typename Vec<B>::Float y) {
  using Float = typename Vec<B>::Float;
  const Float zero = splat<B>(0.0F);
  const Float one = splat<B>(1.0F);
  switch (kind) {
    case Activation::kLinear:
      return one;
    case Activation::kLeaky:
    case Activation::kRevleaky:
      return y > 0.0F ? one : splat<B>(0.1F);
    case Activation::kRelu:
      return y > 0.0F ? one : zero;
    case Activation::kRelu6:
      return y > 0.0F ? (y < 6.0F ? one : zero) : zero;
    case Activation::kRelie:
      return y > 0.0F ? one : splat<B>(0.01F);
    case Activation::kRamp:
      return y > 0.0F ? splat<B>(1.1F) : splat<B>(0.1F);
    case Activation::kLogistic:
      return y * (1.0F - y);
    case Activation::kLoggy: {
      const Float u = 0.5F * (y + 1.0F);
      return 2.0F * u * (1.0F - u);
    }
    case Activation::kTanh:
      return 1.0F - y * y;
    case Activation::kElu:
      return y >= 0.0F ? one : y + 1.0F;
    case Activation::kSelu:
      return y >= 0.0F ? splat<B>(1.0507F) : y + (1.0507F * 1.6732F);
    case Activation::kGelu: {
      const Float a = 0.797885F * x + 0.035677F * x * x * x;
      const Float t = 2.0F * logistic<B>(2.0F * a) - 1.0F;
      return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * (0.797885F + 3.0F * 0.035677F * x * x);
    }
    case Activation::kSwish: {
      const Float s = logistic<B>(x);
      return s + x * s * (1.0F - s);
    }
    case Activation::kMish: {
      const Float e = exp<B>(x > 20.0F ? splat<B>(20.0F) : x);
      const Float n = e * e + 2.0F * e;
      const Float w = n / (n + 2.0F);
      return x > 20.0F ? one : w + x * (1.0F - w * w) * (e / (1.0F + e));
    }
    case Activation::kHardMish:
      return x > 0.0F ? one : (x > -2.0F ? x + 1.0F : zero);
    case Activation::kPlse:
      return y < 0.0F ? splat<B>(0.01F) : (y > 1.0F ? splat<B>(0.01F) : splat<B>(0.125F));
    case Activation::kHardtan:
      return y > -1.0F ? (y < 1.0F ? one : zero) : zero;
    case Activation::kLhtan:
      return y > 0.0F ? (y < 1.0F ? one : splat<B>(0.001F)) : splat<B>(0.001F);
    case Activation::kStair: {
      using Int = typename Vec<B>::Int;
      const Float t = __builtin_convertvector(__builtin_convertvector(y, Int), Float);
      const Float size = y < 0.0F ? -y : y;
      return size < kAllIntegers ? (t == y ? zero : one) : zero;
    }
    default:
      return one;
  }
}

/// Calls `body` with the activation as a compile-time constant for the common kinds (their loops
/// get no switch), and with a generic wrapper for the rest.
template <typename Body>
void with_activation(Activation kind, Body body) {
  switch (kind) {
    case Activation::kLinear:
      body([] { return Activation::kLinear; });
      break;
    case Activation::kLeaky:
      body([] { return Activation::kLeaky; });
      break;
    case Activation::kRelu:
      body([] { return Activation::kRelu; });
      break;
    case Activation::kSwish:
      body([] { return Activation::kSwish; });
      break;
    case Activation::kMish:
      body([] { return Activation::kMish; });
      break;
    case Activation::kLogistic:
      body([] { return Activation::kLogistic; });
      break;
    default:
      body([kind] { return kind; });
      break;
  }
}

}  // namespace lantern::ops
