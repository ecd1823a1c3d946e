#include <numeric>

#include "ops/cost/cost_ref.hpp"
#include "ops/finite_difference.hpp"
#include "ops/softmax/softmax_ref.hpp"

namespace lantern::ops {
namespace {

using test::Values;

TEST(SoftmaxRef, GroupsAndTemperature) {
  const Values x{1, 2, 4, 0, 0};
  Values y(5);
  const std::vector<std::int64_t> sizes{3, 2};
  ref::softmax_forward<double>(1, 5, sizes, 2.0, x.data(), y.data());
  const double sum = std::exp(0.5) + std::exp(1.0) + std::exp(2.0);
  test::expect_near(y, {std::exp(0.5) / sum, std::exp(1.0) / sum, std::exp(2.0) / sum, 0.5, 0.5},
                    1e-15);
  // Huge inputs do not overflow.
  const std::vector<float> large{1e30F, 1e30F, -1e30F};
  std::vector<float> p(3);
  ref::softmax_one(large.data(), p.data(), 3, 1, 1.0F);
  EXPECT_EQ(p, (std::vector<float>{0.5F, 0.5F, 0.0F}));
}

TEST(SoftmaxRef, JacobianMatchesCentralDifferences) {
  Rng rng(1, "softmax_ref_test");
  const std::vector<std::int64_t> sizes{4, 1, 3};
  Values x = test::random_values(rng, 16, -3, 3);
  const Values d = test::random_values(rng, 16);
  Values y(16);
  const auto loss = [&] {
    ref::softmax_forward<double>(2, 8, sizes, 1.7, x.data(), y.data());
    return test::dot(d, y);
  };
  loss();
  const Values forward = y;
  test::expect_gradient("groups", x,
                        test::added(16,
                                    [&](double* p) {
                                      ref::softmax_backward<double>(2, 8, sizes, 1.7,
                                                                    forward.data(), d.data(), p);
                                    }),
                        loss);
}

TEST(SoftmaxRef, SpatialJacobianMatchesCentralDifferences) {
  Rng rng(2, "softmax_ref_test");
  Values x = test::random_values(rng, 2 * 3 * 4, -3, 3);
  const Values d = test::random_values(rng, 24);
  Values y(24);
  const auto loss = [&] {
    ref::softmax_spatial_forward(2, 3, 4, 0.8, x.data(), y.data());
    return test::dot(d, y);
  };
  loss();
  EXPECT_NEAR(y[0] + y[4] + y[8], 1, 1e-15);
  const Values forward = y;
  test::expect_gradient("spatial", x,
                        test::added(24,
                                    [&](double* p) {
                                      ref::softmax_spatial_backward(2, 3, 4, 0.8, forward.data(),
                                                                    d.data(), p);
                                    }),
                        loss);
}

TEST(SoftmaxRef, LossDeltaIsTheNegativeGradientOfTheCrossEntropy) {
  Rng rng(3, "softmax_ref_test");
  const std::vector<std::int64_t> sizes{6};
  Values x = test::random_values(rng, 12, -3, 3);
  Values truth = test::random_values(rng, 12, 0, 1);  // soft labels, each sample sums to 1
  for (std::size_t b = 0; b < 2; ++b) {
    const auto begin = truth.begin() + static_cast<std::ptrdiff_t>(6 * b);
    const double sum = std::accumulate(begin, begin + 6, 0.0);
    std::for_each(begin, begin + 6, [&](double& t) { t /= sum; });
  }
  Values p(12);
  Values delta(12);
  const auto loss = [&] {
    ref::softmax_forward<double>(2, 6, sizes, 1.0, x.data(), p.data());
    return -ref::softmax_loss(12, p.data(), truth.data(), delta.data());
  };
  loss();
  const Values gradient = delta;
  test::expect_gradient("x", x, gradient, loss);
}

TEST(SoftmaxRef, LossOfMaskedAndImpossibleEntries) {
  const std::vector<float> p{0.25F, 0.75F, 0.0F};
  const std::vector<float> truth{-1234.0F, 1.0F, 0.0F};
  std::vector<float> delta(3);
  EXPECT_NEAR(ref::softmax_loss(3, p.data(), truth.data(), delta.data()), -std::log(0.75), 1e-7);
  EXPECT_EQ(delta, (std::vector<float>{0.0F, 0.25F, 0.0F}));
  const std::vector<float> surprise{0.0F, 0.0F, 1.0F};
  EXPECT_TRUE(std::isfinite(ref::softmax_loss(3, p.data(), surprise.data(), delta.data())));
}

TEST(CostRef, DeltaIsHalfTheNegativeDerivative) {
  Rng rng(4, "cost_ref_test");
  for (const auto kind : {ref::CostKind::kSse, ref::CostKind::kMasked, ref::CostKind::kSmooth}) {
    Values x = test::random_values(rng, 30, -3, 3);
    Values truth = test::random_values(rng, 30, -3, 3);
    truth[3] = truth[17] = kind == ref::CostKind::kMasked ? -1234 : 0.5;
    for (std::size_t i = 0; i < x.size(); ++i) {  // away from the kink of smooth at |t - x| = 1
      if (std::abs(std::abs(truth[i] - x[i]) - 1) < 0.01) x[i] += 0.05;
    }
    Values error(30);
    Values delta(30);
    const auto loss = [&] {
      return -0.5 * ref::cost_forward(kind, 30, x.data(), truth.data(), error.data(), delta.data());
    };
    loss();
    const Values gradient = delta;
    test::expect_gradient("x", x, gradient, loss);
    const Values diff =
        test::added(30, [&](double* p) { ref::cost_backward(30, 0.5, gradient.data(), p); });
    for (std::size_t i = 0; i < 30; ++i) EXPECT_EQ(diff[i], 0.5 * gradient[i]);
  }
}

TEST(CostRef, ErrorsOfTheTable) {
  const Values x{1, 1, 1};
  const Values truth{1.5, 4, -1234};
  Values error(3);
  Values delta(3);
  EXPECT_EQ(ref::cost_forward(ref::CostKind::kMasked, 3, x.data(), truth.data(), error.data(),
                              delta.data()),
            0.25 + 9);
  EXPECT_EQ(error, (Values{0.25, 9, 0}));
  EXPECT_EQ(delta, (Values{0.5, 3, 0}));
  EXPECT_EQ(ref::cost_forward(ref::CostKind::kSmooth, 2, x.data(), truth.data(), error.data(),
                              delta.data()),
            0.25 + 5);
  EXPECT_EQ(delta, (Values{0.5, 1, 0}));
}

}  // namespace
}  // namespace lantern::ops
