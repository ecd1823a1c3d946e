// The vector functions against long double and double over their whole range.

#include "ops/simd.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/activation/activation_ref.hpp"
#include "ops/activation/activation_simd.hpp"
#include "ops/blocks.hpp"

namespace lantern::test {
namespace {

using ops::Activation;
using ops::splat;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Floats from `smallest` to `largest`, equally many in every binade.
std::vector<float> sweep(float smallest, float largest) {
  std::vector<float> values;
  std::int32_t bits = 0, end = 0;
  std::memcpy(&bits, &smallest, sizeof bits);
  std::memcpy(&end, &largest, sizeof end);
  for (; bits < end; bits += 4999) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    values.push_back(value);
  }
  values.push_back(largest);
  return values;
}

std::vector<float> both_signs(float smallest, float lowest, float highest) {
  std::vector<float> values = sweep(smallest, highest);
  for (const float v : sweep(smallest, -lowest)) values.push_back(-v);
  return values;
}

template <typename Got, typename Want>
void expect_relative(const std::vector<float>& values, Got got, Want want, long double bound) {
  for (const float x : values) {
    const long double w = want(static_cast<long double>(x));
    ASSERT_LE(std::abs(static_cast<long double>(got(x)) - w), bound * std::abs(w)) << "at " << x;
  }
}

// One lane of each vector width; the widths must agree to the bit.
template <typename F>
float every_width(F f, float x) {
  const float one = f(ops::BlockTag<1>(), x);
  const float eight = f(ops::BlockTag<8>(), x);
  const float sixteen = f(ops::BlockTag<16>(), x);
  EXPECT_EQ(std::memcmp(&one, &eight, sizeof one), 0) << "widths 1 and 8 differ at " << x;
  EXPECT_EQ(std::memcmp(&one, &sixteen, sizeof one), 0) << "widths 1 and 16 differ at " << x;
  return sixteen;
}

float exp_of(float x) {
  return every_width([](auto b, float v) { return ops::exp<b()>(splat<b()>(v))[b() - 1]; }, x);
}
float logistic_of(float x) {
  return every_width([](auto b, float v) { return ops::logistic<b()>(splat<b()>(v))[b() - 1]; }, x);
}
float value_of(Activation kind, float x) {
  return every_width(
      [&](auto b, float v) { return ops::activate<b()>(kind, splat<b()>(v))[b() - 1]; }, x);
}
float slope_of(Activation kind, float x) {
  const float y = value_of(kind, x);
  return every_width(
      [&](auto b, float v) {
        return ops::activation_slope<b()>(kind, splat<b()>(v), splat<b()>(y))[b() - 1];
      },
      x);
}

TEST(Simd, ExpHasTheStatedError) {
  expect_relative(
      both_signs(1e-12F, -87.3F, 88.3F), exp_of, [](long double x) { return std::exp(x); }, 1e-7L);
  EXPECT_EQ(exp_of(0.0F), 1.0F);
  for (const float x : {-87.4F, -100.0F, -3e38F, -kInfinity}) EXPECT_EQ(exp_of(x), 0.0F) << x;
  for (const float x : {88.4F, 100.0F, 3e38F, kInfinity}) EXPECT_EQ(exp_of(x), exp_of(88.3F)) << x;
  EXPECT_NEAR(exp_of(kInfinity), 2.2e38F, 0.05e38F);
  EXPECT_TRUE(std::isnan(exp_of(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Simd, LogisticHasTheStatedError) {
  expect_relative(
      both_signs(1e-12F, -87.3F, 200.0F), logistic_of,
      [](long double x) { return 1 / (1 + std::exp(-x)); }, 2e-7L);
  EXPECT_EQ(logistic_of(0.0F), 0.5F);
  for (const float x : {-90.0F, -3e38F, -kInfinity}) {
    EXPECT_GE(logistic_of(x), 0.0F);
    EXPECT_LE(logistic_of(x), 5e-39F);
  }
  EXPECT_EQ(logistic_of(kInfinity), 1.0F);
}

TEST(Simd, SmoothActivationsAreExactInValueAndSlope) {
  for (const Activation kind :
       {Activation::kMish, Activation::kSwish, Activation::kGelu, Activation::kTanh,
        Activation::kLoggy, Activation::kElu, Activation::kSelu}) {
    SCOPED_TRACE(std::string(ops::to_string(kind)));
    // Nearer to zero e^x - 1 is zero in single precision, and the slope that of the other side.
    for (const float x : both_signs(1e-6F, -500.0F, 500.0F)) {
      const double want = ops::ref::activate<double>(kind, x);
      ASSERT_NEAR(value_of(kind, x), want, 3e-7 * std::max(1.0, std::abs(want)))
          << "value at " << x;
      ASSERT_NEAR(slope_of(kind, x), ops::ref::activation_gradient<double>(kind, x, want), 3e-6)
          << "slope at " << x;
    }
  }
}

// The long left tails: no cancellation there.
TEST(Simd, MishAndSwishKeepTheirRelativeErrorInTheTails) {
  for (const Activation kind : {Activation::kMish, Activation::kSwish}) {
    SCOPED_TRACE(std::string(ops::to_string(kind)));
    expect_relative(
        both_signs(1e-12F, -80.0F, 500.0F), [&](float x) { return value_of(kind, x); },
        [&](long double x) { return ops::ref::activate(kind, x); }, 5e-7L);
    expect_relative(
        sweep(2.0F, 80.0F), [&](float x) { return slope_of(kind, -x); },
        [&](long double x) {
          return ops::ref::activation_gradient(kind, -x, ops::ref::activate(kind, -x));
        },
        2e-6L);
  }
}

TEST(Simd, StairKeepsLargeValues) {
  for (const float x : {8388607.0F, 8388609.0F, 16777215.0F, 3e9F, 1e10F, 1e30F, kInfinity}) {
    for (const float v : {x, -x}) {
      EXPECT_EQ(value_of(Activation::kStair, v), ops::ref::activate(Activation::kStair, v)) << v;
      EXPECT_EQ(slope_of(Activation::kStair, v),
                ops::ref::activation_gradient(Activation::kStair, v,
                                              ops::ref::activate(Activation::kStair, v)))
          << v;
    }
  }
}

TEST(Simd, LaneMaskKeepsTheLanesInUse) {
  for (int used = 0; used <= 16; ++used) {
    const auto kept = ops::select<16>(ops::lane_mask<16>(used), splat<16>(1.0F), splat<16>(0.0F));
    for (int lane = 0; lane < 16; ++lane) EXPECT_EQ(kept[lane], lane < used ? 1.0F : 0.0F);
  }
}

}  // namespace
}  // namespace lantern::test
