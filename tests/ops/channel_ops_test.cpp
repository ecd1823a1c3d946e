// [avgpool], [local_avgpool], [scale_channels], [sam], [dropout], [reorg], maxpool_depth: the
// kernels of the engine against the reference templates, in every layout, overwriting and
// accumulating.

#include "ops/avg_pool/avg_pool.hpp"
#include "ops/avg_pool/avg_pool_ref.hpp"
#include "ops/dropout/drop_block.hpp"
#include "ops/dropout/dropout.hpp"
#include "ops/dropout/dropout_ref.hpp"
#include "ops/max_pool/max_pool_depth.hpp"
#include "ops/max_pool/max_pool_ref.hpp"
#include "ops/op_runner.hpp"
#include "ops/reorg/reorg.hpp"
#include "ops/scale/scale.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

const std::vector<Shape> kShapes{
    {1, 1, 1, 1}, {2, 3, 4, 5}, {3, 16, 3, 3}, {2, 21, 2, 7}, {1, 40, 5, 1}};

TEST(GlobalAvgPool, MatchesTheReference) {
  for_each_way([](const RunnerOptions& options) {
    for (const Shape& shape : kShapes) {
      Rng rng(7, "avg", 0, static_cast<std::uint32_t>(shape.elements()));
      const Floats x = random_floats(rng, shape.elements());
      const Floats dy = random_floats(rng, shape.n() * shape.c());
      OpRunner runner(options);
      const TensorId src = runner.source("x", shape, x);
      const TensorId dst = runner.op(ops::kGlobalAvgPoolForward,
                                     std::make_shared<const graph::OpParams>(), {src}, "y")[0];
      runner.keep(dst);
      runner.differentiate({{dst, dy}});
      runner.run();
      Floats y(dy.size());
      Floats dx = initial_gradient(options, shape);
      const std::int64_t spatial = shape.h() * shape.w();
      ops::ref::global_avg_pool_forward(shape.n(), shape.c(), spatial, x.data(), y.data());
      ops::ref::global_avg_pool_backward(shape.n(), shape.c(), spatial, dy.data(), dx.data());
      expect_close(runner.value(dst), y, 1e-6F, "y");
      expect_close(runner.gradient(src), dx, 1e-6F, "dx");
    }
  });
}

TEST(LocalAvgPool, MatchesTheReference) {
  for_each_way([](const RunnerOptions& options) {
    for (std::uint32_t trial = 0; trial < 8; ++trial) {
      Rng rng(8, "local", 0, trial);
      ops::PoolGeometry g;
      g.n = rng.uniform_int(1, 3);
      g.c = rng.uniform_int(1, 35);
      g.ih = rng.uniform_int(3, 7);
      g.iw = rng.uniform_int(3, 7);
      g.kh = g.kw = rng.uniform_int(1, 3);
      g.sh = rng.uniform_int(1, 3);
      g.sw = rng.uniform_int(1, 3);
      const std::int64_t padding =
          rng.uniform_int(0, 4);  // on both sides; large ones make windows without a cell
      g.ph = g.pw = padding / 2;
      g.oh = (g.ih + padding - g.kh) / g.sh + 1;
      g.ow = (g.iw + padding - g.kw) / g.sw + 1;
      const Shape in{g.n, g.c, g.ih, g.iw};
      const Shape out{g.n, g.c, g.oh, g.ow};
      const Floats x = random_floats(rng, in.elements());
      const Floats dy = random_floats(rng, out.elements());
      OpRunner runner(options);
      const TensorId src = runner.source("x", in, x);
      const TensorId dst =
          runner.op(ops::kLocalAvgPoolForward, std::make_shared<const ops::LocalAvgPoolParams>(g),
                    {src}, "y")[0];
      runner.keep(dst);
      runner.differentiate({{dst, dy}});
      runner.run();
      Floats y(dy.size());
      Floats dx = initial_gradient(options, in);
      ops::ref::local_avg_pool_forward(g, x.data(), y.data());
      ops::ref::local_avg_pool_backward(g, dy.data(), dx.data());
      expect_close(runner.value(dst), y, 1e-6F, "y");
      expect_close(runner.gradient(src), dx, 1e-6F, "dx");
    }
  });
}

TEST(Scale, MatchesTheReference) {
  for_each_way([](const RunnerOptions& options) {
    for (const auto kind :
         {ops::ScaleKind::kPerChannel, ops::ScaleKind::kPerPixel, ops::ScaleKind::kElement}) {
      for (const Shape& shape : kShapes) {
        const Shape factors =
            kind == ops::ScaleKind::kPerChannel ? Shape{shape.n(), shape.c(), 1, 1}
            : kind == ops::ScaleKind::kPerPixel ? Shape{shape.n(), 1, shape.h(), shape.w()}
                                                : shape;
        Rng rng(9, "scale", static_cast<std::uint64_t>(kind),
                static_cast<std::uint32_t>(shape.elements()));
        const Floats x = random_floats(rng, shape.elements());
        const Floats s = random_floats(rng, factors.elements());
        const Floats dy = random_floats(rng, shape.elements());
        OpRunner runner(options);
        const TensorId src = runner.source("x", shape, x);
        const TensorId scale = runner.source("s", factors, s);
        const TensorId dst =
            runner.op(ops::kScaleForward, std::make_shared<const ops::ScaleParams>(kind),
                      {src, scale}, "y")[0];
        runner.keep(dst);
        runner.differentiate({{dst, dy}});
        runner.run();
        Floats y(dy.size());
        Floats dx = initial_gradient(options, shape);
        Floats ds = initial_gradient(options, factors);
        const std::int64_t spatial = shape.h() * shape.w();
        ops::ref::scale_forward(kind, shape.n(), shape.c(), spatial, x.data(), s.data(), y.data());
        ops::ref::scale_backward(kind, shape.n(), shape.c(), spatial, x.data(), s.data(), dy.data(),
                                 dx.data(), ds.data());
        expect_close(runner.value(dst), y, 1e-6F, "y");
        expect_close(runner.gradient(src), dx, 1e-6F, "dx");
        expect_close(runner.gradient(scale), ds, 1e-5F, "ds");
      }
    }
  });
}

TEST(Dropout, DrawsTheSameMaskInEveryLayoutAndInBackward) {
  const ops::RunContext context{.seed = 5, .iteration = 17, .subdivision = 2};
  for_each_way([&](const RunnerOptions& options) {
    for (const Shape& shape : kShapes) {
      const ops::DropoutParams params(0.4F, 6);
      Rng rng(10, "drop", 0, static_cast<std::uint32_t>(shape.elements()));
      const Floats x = random_floats(rng, shape.elements());
      const Floats dy = random_floats(rng, shape.elements());
      OpRunner runner(options);
      const TensorId src = runner.source("x", shape, x);
      const TensorId dst = runner.op(
          ops::kDropoutForward, std::make_shared<const ops::DropoutParams>(params), {src}, "y")[0];
      runner.keep(dst);
      runner.differentiate({{dst, dy}});
      runner.run(context);
      Floats factors(x.size());
      const std::int64_t image_size = shape.elements() / shape.n();
      for (std::int64_t image = 0; image < shape.n(); ++image) {
        ops::dropout_factors(params, context, shape.n(), image, shape.c(), shape.h() * shape.w(),
                             factors.data() + image * image_size);
      }
      Floats y(x.size());
      Floats dx = initial_gradient(options, shape);
      ops::ref::dropout_forward(shape.elements(), factors.data(), x.data(), y.data());
      ops::ref::dropout_backward(shape.elements(), factors.data(), dy.data(), dx.data());
      expect_close(runner.value(dst), y, 1e-6F, "y");
      expect_close(runner.gradient(src), dx, 1e-6F, "dx");
    }
  });
}

TEST(Dropout, DropsTheShareItIsAskedFor) {
  const ops::DropoutParams params(0.3F, 1);
  Floats factors(64 * 400);
  std::vector<Floats> masks;
  // Neighbouring addresses must give unrelated masks.
  for (const ops::RunContext& context :
       {ops::RunContext{.seed = 1, .iteration = 1}, ops::RunContext{.seed = 2, .iteration = 1},
        ops::RunContext{.seed = 1, .iteration = 2},
        ops::RunContext{.seed = 1, .iteration = 1, .subdivision = 1}}) {
    ops::dropout_factors(params, context, 1, 0, 64, 400, factors.data());
    const auto dropped = static_cast<double>(std::ranges::count(factors, 0.0F)) /
                         static_cast<double>(factors.size());
    EXPECT_NEAR(dropped, 0.3, 0.012);  // four standard deviations
    for (const float f : factors) EXPECT_TRUE(f == 0.0F || f == 1.0F / (1.0F - 0.3F));
    masks.push_back(factors);
  }
  for (std::size_t i = 0; i < masks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::int64_t equal = 0;
      for (std::size_t k = 0; k < factors.size(); ++k) equal += masks[i][k] == masks[j][k] ? 1 : 0;
      EXPECT_NEAR(static_cast<double>(equal) / static_cast<double>(factors.size()),
                  0.3 * 0.3 + 0.7 * 0.7, 0.02);
    }
  }
  // Image i of subdivision k is image k * mini-batch + i of the iteration.
  Floats other(factors.size());
  ops::dropout_factors(params, {.seed = 3, .iteration = 4, .subdivision = 1}, 2, 1, 64, 400,
                       factors.data());
  ops::dropout_factors(params, {.seed = 3, .iteration = 4, .subdivision = 3}, 1, 0, 64, 400,
                       other.data());
  EXPECT_EQ(factors, other);
}

TEST(DropBlock, DrawsTheSameBlocksInEveryLayoutAndInBackward) {
  const ops::RunContext context{
      .seed = 5, .iteration = 60, .subdivision = 1, .max_iterations = 100};
  for_each_way([&](const RunnerOptions& options) {
    for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{3, 16, 3, 3}, Shape{2, 21, 7, 6}}) {
      const ops::DropBlockParams params(0.9F, 3, 0, 6);
      Rng rng(17, "block", 0, static_cast<std::uint32_t>(shape.elements()));
      const Floats x = random_floats(rng, shape.elements());
      const Floats dy = random_floats(rng, shape.elements());
      OpRunner runner(options);
      const TensorId src = runner.source("x", shape, x);
      const TensorId dst =
          runner.op(ops::kDropBlockForward, std::make_shared<const ops::DropBlockParams>(params),
                    {src}, "y")[0];
      runner.keep(dst);
      runner.differentiate({{dst, dy}});
      runner.run(context);
      Floats factors(x.size());
      for (std::int64_t image = 0; image < shape.n(); ++image) {
        ops::drop_block_factors(params, context, shape.n(), image, shape,
                                factors.data() + image * shape.elements() / shape.n());
      }
      Floats y(x.size());
      Floats dx = initial_gradient(options, shape);
      ops::ref::dropout_forward(shape.elements(), factors.data(), x.data(), y.data());
      ops::ref::dropout_backward(shape.elements(), factors.data(), dy.data(), dx.data());
      expect_close(runner.value(dst), y, 1e-6F, "y");
      expect_close(runner.gradient(src), dx, 1e-6F, "dx");
    }
  });
}

TEST(DropBlock, DropsOneWholeBlockOfAChannelAndKeepsTheSum) {
  const Shape shape{1, 200, 8, 6};
  const ops::DropBlockParams params(0.4F, 3, 0, 1);
  const ops::RunContext context{.seed = 9, .iteration = 900, .max_iterations = 1000};
  const ops::DropBlockState state = ops::drop_block_state(params, context, 8, 6);
  EXPECT_EQ(state.side, 3);
  EXPECT_NEAR(state.chance, 0.4 / 9, 1e-7);
  Floats factors(200 * 48);
  ops::drop_block_factors(params, context, 1, 0, shape, factors.data());
  std::int64_t blocks = 0;
  double sum = 0;
  for (std::size_t c = 0; c < 200; ++c) {
    std::vector<std::size_t> dropped;
    for (std::size_t s = 0; s < 48; ++s) {
      sum += factors[c * 48 + s];
      if (factors[c * 48 + s] == 0) dropped.push_back(s);
    }
    if (dropped.empty()) continue;
    ++blocks;
    ASSERT_EQ(dropped.size(), 9U);
    for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(dropped[i], dropped[0] + i / 3 * 6 + i % 3);
  }
  EXPECT_NEAR(sum, 200 * 48, 1e-2);  // the factor makes up for what is lost
  // A channel keeps all of its 48 cells with probability (1 - 0.4 / 9)^48 = 0.113.
  EXPECT_NEAR(static_cast<double>(blocks) / 200, 0.887, 0.09);
}

TEST(DropBlock, GrowsUntilMostOfTheRunIsOver) {
  const ops::DropBlockParams relative(0.5F, 0, 0.5F, 1);
  const auto at = [&](std::int64_t iteration) {
    return ops::drop_block_state(relative, {.iteration = iteration, .max_iterations = 1000}, 20,
                                 12);
  };
  EXPECT_EQ(at(1).side, 1);
  EXPECT_NEAR(at(1).chance, 0.5 / 850, 1e-9);
  EXPECT_EQ(at(425).side, 3);  // half of half of the smaller side
  EXPECT_NEAR(at(425).chance, 0.25 / 9, 1e-9);
  EXPECT_EQ(at(850).side, 6);
  EXPECT_EQ(at(1000).side, 6);
}

TEST(Reorg, MatchesTheReference) {
  for_each_way([](const RunnerOptions& options) {
    for (const auto kind :
         {ops::ReorgKind::kReorg, ops::ReorgKind::kSpaceToDepth, ops::ReorgKind::kDepthToSpace}) {
      for (const std::int64_t s : {1, 2, 3}) {
        const Shape in = kind == ops::ReorgKind::kSpaceToDepth ? Shape{2, 5, 2 * s, s}
                                                               : Shape{2, 3 * s * s, s, 2 * s};
        const Shape out = kind == ops::ReorgKind::kDepthToSpace
                              ? Shape{2, in.c() / (s * s), in.h() * s, in.w() * s}
                              : Shape{2, in.c() * s * s, in.h() / s, in.w() / s};
        Rng rng(11, "reorg", static_cast<std::uint64_t>(kind), static_cast<std::uint32_t>(s));
        const Floats x = random_floats(rng, in.elements());
        const Floats dy = random_floats(rng, in.elements());
        OpRunner runner(options);
        const TensorId src = runner.source("x", in, x);
        const TensorId dst = runner.op(
            ops::kReorgForward, std::make_shared<const ops::ReorgParams>(kind, s), {src}, "y")[0];
        EXPECT_EQ(runner.graph().type(dst).shape, out);
        runner.keep(dst);
        runner.differentiate({{dst, dy}});
        runner.run();
        Floats y(x.size());
        Floats dx = initial_gradient(options, in);
        ops::ref::reorg_forward(kind, 2, in.c(), in.h(), in.w(), s, x.data(), y.data());
        ops::ref::reorg_backward(kind, 2, in.c(), in.h(), in.w(), s, dy.data(), dx.data());
        EXPECT_EQ(runner.value(dst), y);
        EXPECT_EQ(runner.gradient(src), dx);
      }
    }
  });
}

TEST(DepthPool, MatchesTheReference) {
  for_each_way([](const RunnerOptions& options) {
    for (const Shape& shape : kShapes) {
      for (const std::int64_t channels : {std::int64_t{1}, (shape.c() + 1) / 2, shape.c()}) {
        Rng rng(12, "depth", static_cast<std::uint64_t>(channels),
                static_cast<std::uint32_t>(shape.elements()));
        const Shape out{shape.n(), channels, shape.h(), shape.w()};
        Floats x = random_floats(rng, shape.elements());
        for (float& v : x) v = std::round(v * 3);  // ties
        const Floats dy = random_floats(rng, out.elements());
        OpRunner runner(options);
        const TensorId src = runner.source("x", shape, x);
        const TensorId dst =
            runner.op(ops::kDepthPoolForward,
                      std::make_shared<const ops::DepthPoolParams>(channels, true), {src}, "y")[0];
        runner.keep(dst);
        runner.differentiate({{dst, dy}});
        runner.run();
        Floats y(dy.size());
        std::vector<std::uint16_t> index(dy.size());
        Floats dx = initial_gradient(options, shape);
        const std::int64_t spatial = shape.h() * shape.w();
        ops::ref::max_pool_depth_forward(shape.n(), shape.c(), channels, spatial, x.data(),
                                         y.data(), index.data());
        ops::ref::max_pool_depth_backward(shape.n(), shape.c(), channels, spatial, dy.data(),
                                          index.data(), dx.data());
        EXPECT_EQ(runner.value(dst), y);
        EXPECT_EQ(runner.gradient(src), dx);
      }
    }
  });
}

}  // namespace
}  // namespace lantern::test
