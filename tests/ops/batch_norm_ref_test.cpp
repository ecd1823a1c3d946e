#include "ops/batch_norm/batch_norm_ref.hpp"

#include "ops/finite_difference.hpp"

namespace lantern::ops {
namespace {

using test::Values;

struct Case {
  std::int64_t n = 2, c = 3, spatial = 4;
  Activation activation = Activation::kLinear;
  bool with_residual = false;
  ref::Statistics statistics = ref::Statistics::kBatch;
};

// One batch norm with everything it reads; mean and variance are recomputed when they are those of
// the batch.
struct Net {
  Case p;
  Values x, gamma, beta, residual, mean, variance, d;

  Net(Rng& rng, const Case& which) : p(which) {
    const std::int64_t total = p.n * p.c * p.spatial;
    // With leaky, draw until no pre-activation lies near the kink.
    do {
      x = test::random_values(rng, total, -2, 3);
      gamma = test::random_values(rng, p.c, 0.5, 1.5);
      beta = test::random_values(rng, p.c);
      residual = test::random_values(rng, p.with_residual ? total : 0);
      mean = test::random_values(rng, p.c);
      variance = test::random_values(rng, p.c, 0.3, 2);
      d = test::random_values(rng, total);
    } while (p.activation == Activation::kLeaky && smallest() < 0.02);
  }
  const double* residual_data() const { return p.with_residual ? residual.data() : nullptr; }
  void update_statistics() {
    if (p.statistics == ref::Statistics::kFixed) return;
    ref::batch_norm_statistics(p.n, p.c, p.spatial, x.data(), mean.data(), variance.data());
  }
  double smallest() {
    update_statistics();
    Values pre(x.size());
    ref::batch_norm_affine(p.n, p.c, p.spatial, x.data(), mean.data(), variance.data(),
                           gamma.data(), beta.data(), pre.data());
    double least = 1;
    for (const double v : pre) least = std::min(least, std::abs(v));
    return least;
  }
  double loss() {
    update_statistics();
    Values y(x.size());
    ref::batch_norm_forward(p.n, p.c, p.spatial, x.data(), mean.data(), variance.data(),
                            gamma.data(), beta.data(), residual_data(), p.activation, y.data());
    return test::dot(d, y);
  }
  void backward(double* diff_x, double* diff_gamma, double* diff_beta, double* diff_residual) {
    update_statistics();
    ref::batch_norm_backward(p.n, p.c, p.spatial, x.data(), mean.data(), variance.data(),
                             gamma.data(), beta.data(), p.activation, p.statistics, d.data(),
                             diff_x, diff_gamma, diff_beta, diff_residual);
  }
};

TEST(BatchNormRef, GradientsMatchCentralDifferences) {
  Rng rng(1, "batch_norm_ref_test");
  for (const Activation activation :
       {Activation::kLinear, Activation::kLeaky, Activation::kMish, Activation::kSwish,
        Activation::kLogistic, Activation::kNormalizeChannelsSoftmax}) {
    for (const bool with_residual : {false, true}) {
      for (const auto statistics : {ref::Statistics::kBatch, ref::Statistics::kFixed}) {
        for (const std::int64_t spatial : {1, 6}) {
          SCOPED_TRACE(std::string(to_string(activation)) + " spatial " + std::to_string(spatial));
          Net net(rng, {spatial == 1 ? 5 : 2, 3, spatial, activation, with_residual, statistics});
          const auto total = static_cast<std::int64_t>(net.x.size());
          const auto loss = [&] { return net.loss(); };
          const Values dx = test::added(
              total, [&](double* out) { net.backward(out, nullptr, nullptr, nullptr); });
          const Values dgamma = test::added(
              net.p.c, [&](double* out) { net.backward(nullptr, out, nullptr, nullptr); });
          const Values dbeta = test::added(
              net.p.c, [&](double* out) { net.backward(nullptr, nullptr, out, nullptr); });
          test::expect_gradient("x", net.x, dx, loss);
          test::expect_gradient("gamma", net.gamma, dgamma, loss);
          test::expect_gradient("beta", net.beta, dbeta, loss);
          if (!with_residual) continue;
          const Values dres = test::added(
              total, [&](double* out) { net.backward(nullptr, nullptr, nullptr, out); });
          test::expect_gradient("residual", net.residual, dres, loss);
        }
      }
    }
  }
}

TEST(BatchNormRef, StatisticsAreTheMeanAndTheBiasedVariance) {
  // [2, 2, 2]: channel 0 holds 1 2 5 6 (mean 3.5, variance 4.25), channel 1 holds 3 3 3 7 (4, 3).
  const Values x{1, 2, 3, 3, 5, 6, 3, 7};
  Values mean(2);
  Values variance(2);
  ref::batch_norm_statistics(2, 2, 2, x.data(), mean.data(), variance.data());
  test::expect_near(mean, {3.5, 4}, 1e-15);
  test::expect_near(variance, {4.25, 3}, 1e-15);

  const Values gamma{2, 1};
  const Values beta{-1, 0.5};
  Values y(8);
  ref::batch_norm_forward<double>(2, 2, 2, x.data(), mean.data(), variance.data(), gamma.data(),
                                  beta.data(), nullptr, Activation::kRelu, y.data());
  const double a = 2 / std::sqrt(4.25 + 1e-5);
  const double b = 1 / std::sqrt(3 + 1e-5);
  test::expect_near(y, {0, 0, 0, 0, 1.5 * a - 1, 2.5 * a - 1, 0, 3 * b + 0.5}, 1e-14);

  // A residual is added behind the activation: relu does not cut it.
  const Values residual(8, -10.0);
  Values sum(8);
  ref::batch_norm_forward(2, 2, 2, x.data(), mean.data(), variance.data(), gamma.data(),
                          beta.data(), residual.data(), Activation::kRelu, sum.data());
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(sum[i], y[i] - 10);
}

TEST(BatchNormRef, RollingStatisticsTakeOnePercentOfTheUnbiasedVariance) {
  const Values mean{3};
  const Values variance{4};
  Values rolling_mean{1};
  Values rolling_variance{2};
  ref::batch_norm_update_rolling(1, 5, mean.data(), variance.data(), rolling_mean.data(),
                                 rolling_variance.data());
  EXPECT_NEAR(rolling_mean[0], 0.99 * 1 + 0.01 * 3, 1e-15);
  EXPECT_NEAR(rolling_variance[0], 0.99 * 2 + 0.01 * 5, 1e-15);
  // One value a channel: no division by zero.
  ref::batch_norm_update_rolling(1, 1, mean.data(), Values{0}.data(), rolling_mean.data(),
                                 rolling_variance.data());
  EXPECT_TRUE(std::isfinite(rolling_variance[0]));
}

TEST(BatchNormRef, FloatFollowsDouble) {
  Rng rng(3, "batch_norm_ref_float");
  Net net(rng, {3, 4, 25, Activation::kMish, false, ref::Statistics::kBatch});
  net.update_statistics();
  const Values want = test::added(static_cast<std::int64_t>(net.x.size()), [&](double* out) {
    net.backward(out, nullptr, nullptr, nullptr);
  });
  const auto narrow = [](const Values& v) { return std::vector<float>(v.begin(), v.end()); };
  const auto x = narrow(net.x), gamma = narrow(net.gamma), beta = narrow(net.beta),
             d = narrow(net.d);
  std::vector<float> mean(4), variance(4), dx(x.size());
  ref::batch_norm_statistics(3, 4, 25, x.data(), mean.data(), variance.data());
  ref::batch_norm_backward<float>(3, 4, 25, x.data(), mean.data(), variance.data(), gamma.data(),
                                  beta.data(), Activation::kMish, ref::Statistics::kBatch, d.data(),
                                  dx.data(), nullptr, nullptr, nullptr);
  test::expect_near(Values(dx.begin(), dx.end()), want, 2e-6);
}

}  // namespace
}  // namespace lantern::ops
