#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace lantern::ops {

/// exp(x) in float that a compiler can vectorise: no branch, no table, no library call. Relative
/// error below 2e-7 for -87.3 <= x <= 88.3, clamped outside; NaN stays NaN. x = n ln2 + r, |r| <=
/// ln2 / 2; e^r by its Taylor series to r^7 (remainder below 6e-9), 2^n through the exponent bits.
/// n comes from adding 1.5 * 2^23, which leaves the rounded value in the low mantissa bits.
inline float exp_approx(float x) {
  constexpr float kMagic = 12582912.0F;           // 1.5 * 2^23
  constexpr float kLn2High = 0.693145751953125F;  // 15 bits, so that n * kLn2High is exact
  constexpr float kLn2Low = 1.42860682030941723212e-6F;
  x = x < -87.3F ? -87.3F : x;
  x = x > 88.3F ? 88.3F : x;
  const float shifted = x * 1.44269504088896341F + kMagic;
  const float n = shifted - kMagic;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const std::uint32_t exponent =
      (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kMagic) + 127U) << 23U;
  return p * std::bit_cast<float>(exponent);
}

inline double exp_approx(double x) { return std::exp(x); }

template <typename T>
T logistic_approx(T x) {
  return T(1) / (T(1) + exp_approx(-x));
}

}  // namespace lantern::ops
