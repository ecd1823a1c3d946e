#include "ops/finite_difference.hpp"
#include "ops/sgd/sgd_ref.hpp"

namespace lantern::ops {
namespace {

using test::Values;

TEST(SgdRef, FollowsTheRecurrenceOfHeavyBallMomentum) {
  // u_t = momentum u_(t-1) - (g_t + decay w_t) B, w_(t+1) = w_t + lr u_t / B, with g_t the mean
  // gradient.
  const double batch = 64, momentum = 0.9, decay = 0.01, lr = 0.1;
  long double w = 1.5L;
  long double u = 0;
  Values weights{1.5};
  Values buffer{0};
  Rng rng(1, "sgd_ref_test");
  for (int t = 0; t < 20; ++t) {
    const double mean_gradient = static_cast<double>(rng.uniform(-1, 1));
    const double rate = lr / (1 + t);  // a change of the rate acts at once
    u = momentum * u - (mean_gradient + decay * w) * batch;
    w += rate * u / batch;
    const Values grad{-mean_gradient * batch};
    ref::sgd_step({.lr = rate, .momentum = momentum, .decay = decay, .batch = batch}, 1,
                  grad.data(), weights.data(), buffer.data());
    ASSERT_NEAR(weights[0], static_cast<double>(w), 1e-13) << t;
    ASSERT_NEAR(buffer[0], static_cast<double>(momentum * u), 1e-11) << t;
  }
}

TEST(SgdRef, LossScaleCancels) {
  const Values grad{3, -2};
  const Values scaled{3 * 128, -2 * 128};
  Values a{1, 2}, b{1, 2}, buffer_a{0, 0}, buffer_b{0, 0};
  for (int t = 0; t < 5; ++t) {
    ref::sgd_step({.lr = 0.1, .batch = 4}, 2, grad.data(), a.data(), buffer_a.data());
    ref::sgd_step({.lr = 0.1, .batch = 4, .loss_scale = 128}, 2, scaled.data(), b.data(),
                  buffer_b.data());
  }
  test::expect_near(b, a, 1e-14);
}

TEST(SgdRef, OptionsOfOneStep) {
  const ref::SgdParams plain{.lr = 1, .momentum = 0.5, .decay = 0, .batch = 1};
  const Values grad{3, 5, -7, 1};
  {
    ref::SgdParams p = plain;  // centred per filter of two values: -1 1, -4 4
    p.centered_length = 2;
    Values w{0, 0, 0, 0}, buffer{0, 0, 0, 0};
    ref::sgd_step(p, 4, grad.data(), w.data(), buffer.data());
    EXPECT_EQ(w, (Values{-1, 1, -4, 4}));
    EXPECT_EQ(buffer, (Values{-0.5, 0.5, -2, 2}));
  }
  {
    ref::SgdParams p = plain;
    p.limit = 4;
    p.clip = 3.5;
    Values w{0, 0, 0, 0}, buffer{0, 0, 0, 0};
    ref::sgd_step(p, 4, grad.data(), w.data(), buffer.data());
    EXPECT_EQ(buffer, (Values{1.5, 2, -2, 0.5}));
    EXPECT_EQ(w, (Values{3, 3.5, -3.5, 1}));
  }
  {
    ref::SgdParams p = plain;
    p.reverse = -1;
    Values w{0, 0, 0, 0}, buffer{0, 0, 0, 0};
    ref::sgd_step(p, 4, grad.data(), w.data(), buffer.data());
    test::expect_near(w, {1.0 / 31, 1.0 / 51, -1.0 / 71, 1.0 / 11}, 1e-15);
  }
}

TEST(SgdRef, CentringLeavesTheDecayAlone) {
  const Values grad{2, 2};
  Values w{1, 3}, buffer{0, 0};
  ref::sgd_step({.lr = 1, .momentum = 0, .decay = 0.5, .batch = 1, .centered_length = 2}, 2,
                grad.data(), w.data(), buffer.data());
  EXPECT_EQ(w, (Values{0.5, 1.5}));
}

TEST(AdamRef, FollowsTheRecurrence) {
  const double batch = 8, decay = 0.01, lr = 0.05, b1 = 0.9, b2 = 0.999, eps = 1e-6;
  long double w = -0.5L, m = 0, v = 0;
  Values weights{-0.5}, first{0}, second{0};
  Rng rng(2, "adam_ref_test");
  for (int t = 1; t <= 30; ++t) {
    const double grad_sum = static_cast<double>(rng.uniform(-4, 4));
    const long double u = grad_sum / batch - decay * w;
    m = b1 * m + (1 - b1) * u;
    v = b2 * v + (1 - b2) * u * u;
    const long double mh = m / (1 - std::pow(static_cast<long double>(b1), t));
    const long double vh = v / (1 - std::pow(static_cast<long double>(b2), t));
    w += lr * mh / (std::sqrt(vh) + eps);
    ref::adam_step({.lr = lr, .decay = decay, .batch = batch * 1, .step = t}, 1,
                   Values{grad_sum}.data(), weights.data(), first.data(), second.data());
    ASSERT_NEAR(weights[0], static_cast<double>(w), 1e-13) << t;
  }
}

TEST(AdamRef, FirstStepIsTheRateWhateverTheGradientsSize) {
  for (const double size : {1e-2, 1.0, 1e4}) {
    Values w{1, 1}, m{0, 0}, v{0, 0};
    const Values grad{size, -size};
    ref::adam_step({.lr = 0.1, .epsilon = 1e-12, .decay = 0, .batch = 64, .loss_scale = 2}, 2,
                   grad.data(), w.data(), m.data(), v.data());
    test::expect_near(w, {1.1, 0.9}, 1e-7);
  }
}

TEST(AdamRef, CentresAndClips) {
  Values w{0, 0, 0, 0}, m{0, 0, 0, 0}, v{0, 0, 0, 0};
  const Values grad{5, 5, 1, 3};
  ref::adam_step({.lr = 1, .decay = 0, .batch = 1, .centered_length = 2, .clip = 0.25}, 4,
                 grad.data(), w.data(), m.data(), v.data());
  EXPECT_EQ(w, (Values{0, 0, -0.25, 0.25}));
}

TEST(EmaRef, MovesTowardsTheWeights) {
  const Values w{2, -4};
  Values average{1, 0};
  ref::ema_step(2, 0.75, w.data(), average.data());
  EXPECT_EQ(average, (Values{1.25, -1}));
}

}  // namespace
}  // namespace lantern::ops
