// Batch normalisation with a pool behind it, in one pass, against the two ops it stands for.

#include "ops/batch_norm/batch_norm_pool.hpp"

#include "ops/batch_norm/batch_norm.hpp"
#include "ops/max_pool/max_pool.hpp"
#include "ops/op_runner.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;
using ops::Activation;

struct Values {
  Shape shape;
  Floats x, mean, variance, gamma, beta, d_pooled;
};

Values random_values(Rng& rng) {
  Values v;
  const std::int64_t n = rng.uniform_int(1, 3);
  const std::int64_t c = rng.uniform_int(1, 35);
  // Up to three segments of sums a plane.
  v.shape = Shape{n, c, 2 * rng.uniform_int(1, 7), 2 * rng.uniform_int(1, 7)};
  if (rng.uniform_int(0, 9) == 0) v.shape = Shape{1, 3, 2 * 70, 2 * 130};
  v.x = random_floats(rng, v.shape.elements(), -3, 3);
  // Equal neighbours: the first of them is the maximum.
  for (std::size_t i = 1; i < v.x.size(); ++i) {
    if (rng.uniform_int(0, 4) == 0) v.x[i] = v.x[i - 1];
  }
  const std::int64_t channels = v.shape.c();
  v.mean = random_floats(rng, channels);
  v.variance = random_floats(rng, channels, 0.1F, 2);
  v.gamma = random_floats(rng, channels, -2, 2);
  v.beta = random_floats(rng, channels);
  v.d_pooled = random_floats(rng, v.shape.elements() / 4);
  return v;
}

struct Result {
  Floats pooled, dx, d_gamma, d_beta;
};

Result run(const Values& v, Activation activation, bool fixed, bool fused,
           const RunnerOptions& options) {
  OpRunner runner(options);
  const Shape channels{v.shape.c()};
  const TensorId x = runner.source("x", v.shape, v.x);
  const TensorId gamma = runner.parameter("gamma", channels, v.gamma);
  const TensorId beta = runner.parameter("beta", channels, v.beta);
  const std::vector<TensorId> inputs{x, runner.input("mean", channels, v.mean),
                                     runner.input("variance", channels, v.variance), gamma, beta};
  TensorId pooled{};
  if (fused) {
    pooled = runner.op(ops::kBatchNormPool,
                       std::make_shared<const ops::BatchNormPoolParams>(activation, fixed, true),
                       inputs, "pooled")[0];
  } else {
    const TensorId y = runner.op(
        ops::kBatchNormApply,
        std::make_shared<const ops::BatchNormParams>(activation, false, fixed), inputs, "y")[0];
    const ops::PoolGeometry g{.n = v.shape.n(),
                              .c = v.shape.c(),
                              .ih = v.shape.h(),
                              .iw = v.shape.w(),
                              .oh = v.shape.h() / 2,
                              .ow = v.shape.w() / 2,
                              .kh = 2,
                              .kw = 2,
                              .sh = 2,
                              .sw = 2};
    pooled = runner.op(ops::kMaxPoolForward, std::make_shared<const ops::PoolParams>(g, true), {y},
                       "pooled")[0];
  }
  runner.keep(pooled);
  runner.differentiate({{pooled, v.d_pooled}});
  runner.run();
  return {runner.value(pooled), runner.gradient(x), runner.gradient(gamma), runner.gradient(beta)};
}

TEST(BatchNormPool, IsApplyAndPoolInOnePass) {
  for (std::uint32_t trial = 0; trial < 30; ++trial) {
    Rng rng(61, "batch norm pool", 0, trial);
    const Values v = random_values(rng);
    const Activation activation = ops::kActivationNames[trial % 20].value;
    const bool fixed = rng.coin();
    for (const int block : {1, 8, 16}) {
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(::testing::Message() << "trial " << trial << " " << to_string(activation)
                                          << " block " << block << " threads " << threads);
        const RunnerOptions options{.block = block, .threads = threads};
        const Result fused = run(v, activation, fixed, true, options);
        const Result apart = run(v, activation, fixed, false, options);
        ASSERT_EQ(fused.pooled, apart.pooled);
        expect_close(fused.dx, apart.dx, 1e-5F, "dx");
        expect_close(fused.d_gamma, apart.d_gamma, 1e-5F, "d_gamma");
        expect_close(fused.d_beta, apart.d_beta, 1e-5F, "d_beta");
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(BatchNormPool, HasTheSameBitsForAnyThreadCount) {
  Rng rng(62, "batch norm pool threads");
  Values v = random_values(rng);
  const Result one = run(v, Activation::kLeaky, false, true, {.block = 16, .threads = 1});
  const Result three = run(v, Activation::kLeaky, false, true, {.block = 16, .threads = 3});
  EXPECT_EQ(one.dx, three.dx);
  EXPECT_EQ(one.d_gamma, three.d_gamma);
}

}  // namespace
}  // namespace lantern::test
