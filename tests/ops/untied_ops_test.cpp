// [normalization], [local], [implicit], the blur of antialiasing, maxpool_zero_nonmax and coordconv
// against plain loops.

#include "ops/blur/blur.hpp"
#include "ops/broadcast/broadcast.hpp"
#include "ops/coord_conv/coord_conv.hpp"
#include "ops/local/local.hpp"
#include "ops/lrn/lrn.hpp"
#include "ops/max_pool/max_pool.hpp"
#include "ops/op_runner.hpp"
#include "ops/zero_nonmax/zero_nonmax.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

using Doubles = std::vector<double>;
Doubles doubles(const Floats& values) { return {values.begin(), values.end()}; }
Floats floats(const Doubles& values) { return {values.begin(), values.end()}; }

TEST(Lrn, MatchesTheReference) {
  for_each_way([](const RunnerOptions& options) {
    for (const std::int64_t size : {1, 4, 5, 40}) {
      const Shape shape{2, 19, 3, 7};
      const ops::ref::LrnSettings p{.alpha = 0.2, .beta = 0.75, .kappa = 1.25, .size = size};
      Rng rng(41, "lrn", static_cast<std::uint64_t>(size));
      const Floats x = random_floats(rng, shape.elements(), -2, 2);
      const Floats dy = random_floats(rng, shape.elements());
      OpRunner runner(options);
      const TensorId src = runner.source("x", shape, x);
      const TensorId dst =
          runner.op(ops::kLrnForward, std::make_shared<const ops::LrnParams>(p), {src}, "y")[0];
      runner.keep(dst);
      runner.differentiate({{dst, dy}});
      runner.run();
      Doubles y(x.size());
      Doubles dx = doubles(initial_gradient(options, shape));
      ops::ref::lrn_forward(p, 2, 19, 21, doubles(x).data(), y.data());
      ops::ref::lrn_backward(p, 2, 19, 21, doubles(x).data(), doubles(dy).data(), dx.data());
      expect_close(runner.value(dst), floats(y), 1e-5F, "y");
      expect_close(runner.gradient(src), floats(dx), 1e-5F, "dx");
    }
  });
}

TEST(Local, MatchesTheReference) {
  for_each_way([](const RunnerOptions& options) {
    struct Case {
      std::int64_t n, c, h, w, filters, size, stride, pad;
    };
    // The last one has more than one strip of weights a filter, and of channels a job.
    for (const Case& k : {Case{1, 1, 3, 3, 1, 1, 1, 0}, Case{3, 5, 6, 5, 4, 3, 1, 1},
                          Case{9, 3, 7, 8, 2, 2, 2, 0}, Case{2, 70, 3, 4, 3, 3, 1, 1}}) {
      ops::LocalGeometry g{.n = k.n, .c = k.c, .ih = k.h, .iw = k.w, .filters = k.filters};
      g.size = k.size;
      g.stride = k.stride;
      g.pad = k.pad;
      g.oh = (k.h + 2 * k.pad - k.size) / k.stride + 1;
      g.ow = (k.w + 2 * k.pad - k.size) / k.stride + 1;
      const Shape shape{k.n, k.c, k.h, k.w};
      Rng rng(42, "local", static_cast<std::uint64_t>(k.c));
      const Floats x = random_floats(rng, shape.elements());
      const Floats w = random_floats(rng, g.weights_count());
      const Floats bias = random_floats(rng, g.dst_image());
      const Floats dy = random_floats(rng, g.n * g.dst_image());
      OpRunner runner(options);
      const TensorId src = runner.source("x", shape, x);
      const TensorId weights = runner.parameter("w", Shape{g.locations() * g.filters, g.taps()}, w);
      const TensorId biases = runner.parameter("b", Shape{g.dst_image()}, bias);
      const TensorId dst =
          runner.op(ops::kLocalForward, std::make_shared<const ops::LocalParams>(g),
                    {src, weights, biases}, "y")[0];
      runner.keep(dst);
      runner.differentiate({{dst, dy}});
      Doubles y(dy.size());
      Doubles dx = doubles(initial_gradient(options, shape));
      Doubles dw(w.size());
      Doubles db(bias.size());
      ops::ref::local_forward(g, doubles(x).data(), doubles(w).data(), doubles(bias).data(),
                              y.data());
      ops::ref::local_backward_data(g, doubles(dy).data(), doubles(w).data(), dx.data());
      for (const int subdivision : {0, 1}) {  // the second mini-batch adds
        runner.run({.subdivision = subdivision});
        ops::ref::local_backward_weights(g, doubles(x).data(), doubles(dy).data(), dw.data(),
                                         db.data());
        expect_close(runner.value(dst), floats(y), 2e-5F, "y");
        expect_close(runner.gradient(src), floats(dx), 2e-5F, "dx");
        expect_close(runner.gradient(weights), floats(dw), 1e-5F, "dw");
        expect_close(runner.gradient(biases), floats(db), 1e-5F, "db");
      }
    }
  });
}

TEST(Broadcast, GivesEveryImageTheParameterAndSumsItsGradient) {
  for_each_way([](const RunnerOptions& options) {
    const Shape shape{3, 5, 2, 1};
    Rng rng(43, "broadcast");
    const Floats w = random_floats(rng, 10);
    const Floats dy = random_floats(rng, 30);
    OpRunner runner(options);
    const TensorId weights = runner.parameter("w", Shape{10}, w);
    const TensorId dst = runner.op(
        ops::kBroadcast, std::make_shared<const ops::BroadcastParams>(shape), {weights}, "y")[0];
    runner.keep(dst);
    runner.differentiate({{dst, dy}});
    Doubles dw(10);
    for (const int subdivision : {0, 1}) {
      runner.run({.subdivision = subdivision});
      for (std::size_t i = 0; i < 30; ++i) dw[i % 10] += static_cast<double>(dy[i]);
      expect_close(runner.gradient(weights), floats(dw), 1e-6F, "dw");
    }
    const Floats y = runner.value(dst);
    for (std::size_t i = 0; i < 30; ++i) EXPECT_EQ(y[i], w[i % 10]);
  });
}

TEST(Blur, MatchesTheReference) {
  for_each_way([](const RunnerOptions& options) {
    for (const ops::BlurKind kind : {ops::BlurKind::kBinomial, ops::BlurKind::kBox}) {
      for (const std::int64_t stride : {1, 2, 3}) {
        const ops::BlurGeometry g{.kind = kind, .n = 2, .c = 19, .ih = 7, .iw = 6, .sh = stride};
        const Shape shape{g.n, g.c, g.ih, g.iw};
        Rng rng(44, "blur", static_cast<std::uint64_t>(stride));
        const Floats x = random_floats(rng, shape.elements());
        const Floats dy = random_floats(rng, g.n * g.c * g.oh() * g.ow());
        OpRunner runner(options);
        const TensorId src = runner.source("x", shape, x);
        const TensorId dst =
            runner.op(ops::kBlurForward, std::make_shared<const ops::BlurParams>(g), {src}, "y")[0];
        runner.keep(dst);
        runner.differentiate({{dst, dy}});
        runner.run();
        Doubles y(dy.size());
        Doubles dx = doubles(initial_gradient(options, shape));
        ops::ref::blur_forward(g, doubles(x).data(), y.data());
        ops::ref::blur_backward(g, doubles(dy).data(), dx.data());
        expect_close(runner.value(dst), floats(y), 1e-6F, "y");
        expect_close(runner.gradient(src), floats(dx), 1e-6F, "dx");
      }
    }
  });
}

TEST(ZeroNonmax, KeepsAMaximumOnlyWhereItStandsAndItsGradient) {
  for_each_way([](const RunnerOptions& options) {
    for (const std::int64_t size : {3, 17}) {  // a byte index, and a wide one
      const Shape shape{2, 19, 8, 9};
      Rng rng(45, "nonmax", static_cast<std::uint64_t>(size));
      const Floats x = random_floats(rng, shape.elements());
      const Floats dz = random_floats(rng, shape.elements());
      const std::int64_t half = size / 2;
      const ops::PoolGeometry g{.n = 2,
                                .c = 19,
                                .ih = 8,
                                .iw = 9,
                                .oh = 8,
                                .ow = 9,
                                .kh = size,
                                .kw = size,
                                .sh = 1,
                                .sw = 1,
                                .ph = half,
                                .pw = half};
      OpRunner runner(options);
      const TensorId src = runner.source("x", shape, x);
      const auto pooled = runner.op(ops::kMaxPoolForward,
                                    std::make_shared<const ops::PoolParams>(g, true), {src}, "y");
      const TensorId dst = runner.op(
          ops::kZeroNonmax, std::make_shared<const ops::ZeroNonmaxParams>(half * size + half),
          {pooled[0], src, pooled[1]}, "z")[0];
      runner.keep(dst);
      runner.differentiate({{dst, dz}});
      runner.run();
      Floats z(x.size());
      Floats dx = initial_gradient(options, shape);
      for (std::int64_t i = 0; i < shape.elements(); ++i) {
        bool is_largest = true;
        for (std::int64_t y = std::max<std::int64_t>(0, i / 9 % 8 - half);
             y < std::min<std::int64_t>(8, i / 9 % 8 + half + 1); ++y) {
          for (std::int64_t c = std::max<std::int64_t>(0, i % 9 - half);
               c < std::min<std::int64_t>(9, i % 9 + half + 1); ++c) {
            is_largest &= x[static_cast<std::size_t>(i / 72 * 72 + y * 9 + c)] <=
                          x[static_cast<std::size_t>(i)];
          }
        }
        if (!is_largest) continue;
        z[static_cast<std::size_t>(i)] = x[static_cast<std::size_t>(i)];
        dx[static_cast<std::size_t>(i)] += dz[static_cast<std::size_t>(i)];
      }
      EXPECT_EQ(runner.value(dst), z);
      EXPECT_EQ(runner.gradient(src), dx);
    }
  });
}

TEST(CoordConv, PutsThePlaceOfACellIntoThreeChannels) {
  for_each_way([](const RunnerOptions& options) {
    for (const std::int64_t channels : {2, 3, 19}) {
      const Shape shape{2, channels, 4, 5};
      Rng rng(46, "coordinates", static_cast<std::uint64_t>(channels));
      const Floats x = random_floats(rng, shape.elements());
      const Floats dy = random_floats(rng, shape.elements());
      OpRunner runner(options);
      const TensorId src = runner.source("x", shape, x);
      const TensorId dst = runner.op(ops::kCoordConvForward,
                                     std::make_shared<const graph::OpParams>(), {src}, "y")[0];
      runner.keep(dst);
      runner.differentiate({{dst, dy}});
      runner.run();
      Floats y = x;
      Floats dx = initial_gradient(options, shape);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const std::int64_t c = at / 20 % channels;
        const float across = 2.0F * static_cast<float>(at % 5) / 5 - 1;
        const float down = 2.0F * static_cast<float>(at / 5 % 4) / 4 - 1;
        if (c == 0) y[i] = across;
        if (c == 1) y[i] = down;
        if (c == 2) y[i] = std::sqrt(across * across + down * down);
        if (c >= 3) dx[i] += dy[i];
      }
      expect_close(runner.value(dst), y, 1e-6F, "y");
      EXPECT_EQ(runner.gradient(src), dx);
    }
  });
}

}  // namespace
}  // namespace lantern::test
