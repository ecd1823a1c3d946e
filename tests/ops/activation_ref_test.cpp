#include "ops/activation/activation_ref.hpp"

#include <cmath>
#include <functional>
#include <map>

#include "ops/finite_difference.hpp"

namespace lantern::ops {
namespace {

using test::Values;

// Places where a kind is not smooth, or where the format switches between two nearly equal
// branches.
std::vector<double> kinks(Activation activation) {
  switch (activation) {
    case Activation::kRelu6:
      return {0, 6};
    case Activation::kHardMish:
      return {-2, 0};
    case Activation::kPlse:
      return {-4, 4};
    case Activation::kHardtan:
      return {-1, 1};
    case Activation::kLhtan:
      return {0, 1};
    case Activation::kStair: {
      std::vector<double> all;
      for (int i = -40; i <= 40; ++i) all.push_back(i);
      return all;
    }
    case Activation::kMish:
      return {-20, 20};
    default:
      return {0};
  }
}

bool is_near_kink(Activation activation, double x) {
  for (const double kink : kinks(activation)) {
    if (std::abs(x - kink) < 0.01) return true;
  }
  return false;
}

TEST(ActivationRef, PointwiseGradientsMatchCentralDifferences) {
  Rng rng(1, "activation_ref_test");
  for (const ActivationName& entry : kActivationNames) {
    if (mixes_channels(entry.value)) continue;
    const auto activation = entry.value;
    Values x = test::random_values(rng, 200, -8, 8);
    for (double& v : x) {
      while (is_near_kink(activation, v)) v += 0.007;
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      Values point{x[i]};
      const auto loss = [&] { return ref::activate(activation, point[0]); };
      const Values gradient{ref::activation_gradient(activation, point[0], loss())};
      test::expect_gradient(std::string(entry.name) + " at " + std::to_string(x[i]), point,
                            gradient, loss);
    }
  }
}

TEST(ActivationRef, ChannelKindsHaveTheExactJacobian) {
  Rng rng(2, "activation_ref_test");
  for (const ActivationName& entry : kActivationNames) {
    if (!mixes_channels(entry.value)) continue;
    for (const std::int64_t c : {1, 2, 5}) {
      const std::int64_t n = 2;
      const std::int64_t spatial = 3;
      // Wide gaps: x / (x + 1e-4) of a single channel is too steep near 0 for the step.
      Values x = test::distinct_values(rng, n * c * spatial, 0.5);
      const Values d = test::random_values(rng, n * c * spatial);
      Values y(x.size());
      const auto loss = [&] {
        ref::activate_channels(entry.value, x.data(), y.data(), n, c, spatial);
        return test::dot(d, y);
      };
      const Values gradient = test::added(n * c * spatial, [&](double* out) {
        ref::activate_channels_backward(entry.value, x.data(), d.data(), out, n, c, spatial);
      });
      test::expect_gradient(entry.name, x, gradient, loss);
    }
  }
}

// The table of the format, written a second time in long double.
long double mish(long double x) { return x * std::tanh(std::log(1.0L + std::exp(x))); }
long double logistic(long double x) { return 1.0L / (1.0L + std::exp(-x)); }
long double stair(long double x) {
  const long n = static_cast<long>(std::floor(x));
  const long double half = std::floor(x / 2.0L);
  return n % 2 == 0 ? half : (x - static_cast<long double>(n)) + half;
}
long double gelu(long double x) {
  return 0.5L * x * (1.0L + std::tanh(0.797885L * x + 0.035677L * std::pow(x, 3.0L)));
}
long double piecewise(long double x, long double low, long double high) {
  return x < low ? low : (x > high ? high : x);
}

const std::map<std::string_view, std::function<long double(long double)>>& table() {
  using F = long double;
  static const std::map<std::string_view, std::function<F(F)>> kTable{
      {"linear", [](F x) { return x; }},
      {"leaky", [](F x) { return std::max(x, 0.1L * x); }},
      {"revleaky", [](F x) { return std::max(x, 0.1L * x); }},
      {"relu", [](F x) { return (x + std::abs(x)) / 2.0L; }},
      {"relu6", [](F x) { return piecewise(x, 0, 6); }},
      {"relie", [](F x) { return std::max(x, 0.01L * x); }},
      {"ramp", [](F x) { return x > 0 ? 1.1L * x : 0.1L * x; }},
      {"logistic", logistic},
      {"loggy", [](F x) { return std::tanh(x / 2.0L); }},
      {"tanh", [](F x) { return std::tanh(x); }},
      {"elu", [](F x) { return x >= 0 ? x : std::exp(x) - 1.0L; }},
      {"selu", [](F x) { return 1.0507L * (x >= 0 ? x : 1.6732L * (std::exp(x) - 1.0L)); }},
      {"gelu", gelu},
      {"swish", [](F x) { return x / (1.0L + std::exp(-x)); }},
      {"mish", mish},
      {"hard_mish", [](F x) { return x > 0 ? x : (x > -2 ? x * x / 2.0L + x : 0.0L); }},
      {"plse",
       [](F x) {
         return x < -4 ? 0.01L * (x + 4) : (x > 4 ? 0.01L * (x - 4) + 1 : 0.125L * x + 0.5L);
       }},
      {"hardtan", [](F x) { return piecewise(x, -1, 1); }},
      {"lhtan", [](F x) { return x < 0 ? 0.001L * x : (x > 1 ? 0.001L * (x - 1) + 1 : x); }},
      {"stair", stair},
  };
  return kTable;
}

TEST(ActivationRef, ValuesMatchTheTableWrittenIndependently) {
  const std::vector<double> points{-30, -19.5, -9.25,  -4.5,  -3.5, -2.75, -2,   -1.5,
                                   -1,  -0.6,  -0.125, -1e-3, 0,    1e-3,  0.25, 0.75,
                                   1,   1.5,   2.25,   3.75,  5,    6.5,   21};
  for (const ActivationName& entry : kActivationNames) {
    if (mixes_channels(entry.value)) continue;
    const auto& formula = table().at(entry.name);
    for (const double x : points) {
      const double want = static_cast<double>(formula(static_cast<long double>(x)));
      const double scale = 1 + std::abs(want);
      EXPECT_NEAR(ref::activate(entry.value, x), want, 1e-8 * scale) << entry.name << " " << x;
      EXPECT_NEAR(ref::activate(entry.value, static_cast<float>(x)), want, 1e-6 * scale)
          << entry.name << " " << x;
    }
  }
}

TEST(ActivationRef, GradientIsFiniteAndBoundedAtEverySize) {
  for (const ActivationName& entry : kActivationNames) {
    for (const float x : {-1e30F, -1000.0F, -90.0F, -20.0F, 0.0F, 20.0F, 90.0F, 1000.0F}) {
      const float y = ref::activate(entry.value, x);
      EXPECT_FALSE(std::isnan(y)) << entry.name << " " << x;
      if (x > -1e10F || entry.value != Activation::kGelu) {
        EXPECT_LE(std::abs(ref::activation_gradient(entry.value, x, y)), 2.0F) << entry.name << x;
      }
    }
  }
}

TEST(ActivationRef, ChannelKindsSumToLessThanOne) {
  // One pixel 1, 2, -1: normalize_channels 1/3.0001, 2/3.0001, 0.
  const Values x{1, 2, -1};
  Values y(3);
  ref::activate_channels(Activation::kNormalizeChannels, x.data(), y.data(), 1, 3, 1);
  test::expect_near(y, {1 / 3.0001, 2 / 3.0001, 0}, 1e-15);
  ref::activate_channels(Activation::kNormalizeChannelsSoftmax, x.data(), y.data(), 1, 3, 1);
  const double sum = 1e-4 + std::exp(1.0) + std::exp(2.0) + std::exp(-1.0);
  test::expect_near(y, {std::exp(1.0) / sum, std::exp(2.0) / sum, std::exp(-1.0) / sum}, 1e-15);
  ref::activate_channels(Activation::kNormalizeChannelsSoftmaxMaxval, x.data(), y.data(), 1, 3, 1);
  const double shifted = 1e-4 + 1 + std::exp(-1.0) + std::exp(-3.0);
  test::expect_near(y, {std::exp(-1.0) / shifted, 1 / shifted, std::exp(-3.0) / shifted}, 1e-15);
}

TEST(ActivationRef, ChannelKindsReadNchw) {
  // [1, 2, 2]: channel 0 is 1 3, channel 1 is 3 1.
  const Values x{1, 3, 3, 1};
  Values y(4);
  ref::activation_forward(Activation::kNormalizeChannels, x.data(), y.data(), 1, 2, 2);
  test::expect_near(y, {1 / 4.0001, 3 / 4.0001, 3 / 4.0001, 1 / 4.0001}, 1e-15);
}

}  // namespace
}  // namespace lantern::ops
