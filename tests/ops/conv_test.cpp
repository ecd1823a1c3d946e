// Convolution kernels of the engine against the reference loops, which run in double.

#include "ops/conv_run.hpp"

#include "ops/conv/conv_ref.hpp"

namespace lantern::test {
namespace {

using Doubles = std::vector<double>;

Doubles widen(const Floats& values) { return {values.begin(), values.end()}; }
Floats narrow(const Doubles& values) {
  Floats floats(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) floats[i] = static_cast<float>(values[i]);
  return floats;
}

// The optimiser and the search for bad gradients walk over the bytes of a tensor, padding included.
void expect_all_finite(OpRunner& runner, const std::string& name) {
  const std::span<const std::byte> bytes = runner.executor().bytes(*runner.graph().find(name));
  Floats raw(bytes.size() / sizeof(float));
  std::memcpy(raw.data(), bytes.data(), bytes.size());
  for (const float v : raw) ASSERT_TRUE(std::isfinite(v)) << name << " holds " << v;
}

void check_against_reference(const ConvGeometry& g, bool bias, const RunnerOptions& options,
                             std::uint32_t trial) {
  SCOPED_TRACE(::testing::Message()
               << to_string(g) << (bias ? " bias" : "") << ", block " << options.block
               << ", threads " << options.threads << (options.accumulate ? ", accumulate" : ""));
  ConvRun conv(g, bias, trial);
  const Doubles x = widen(conv.x), w = widen(conv.w), b = widen(conv.b), dy = widen(conv.dy);
  Doubles y(dy.size()), dw(w.size()), db(b.size());
  Doubles dx = widen(initial_gradient(options, Shape{g.n, g.ic, g.ih, g.iw}));
  ops::ref::conv_forward(g, x.data(), w.data(), bias ? b.data() : nullptr, y.data());
  ops::ref::conv_backward_data(g, dy.data(), w.data(), dx.data());
  ops::ref::conv_backward_weights(g, x.data(), dy.data(), dw.data(), db.data());
  const auto runner = conv.make(options);
  // The second mini-batch of an iteration adds to the gradients, the first of the next one
  // overwrites them.
  for (const int subdivision : {0, 1, 2, 0}) {
    runner->run({.subdivision = subdivision});
    const ConvRun::Result r = conv.result(*runner);
    expect_close(r.y, narrow(y), 1e-5F, "y");
    expect_close(r.dx, narrow(dx), 1e-5F, "dx");
    const auto times = [&](Doubles values) {
      for (double& v : values) v *= subdivision + 1;
      return narrow(values);
    };
    expect_close(r.dw, times(dw), 2e-5F, "dw");
    if (bias) expect_close(r.db, times(db), 1e-5F, "db");
    expect_all_finite(*runner, "d_w");
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Conv, MatchesTheReferenceOnRandomGeometries) {
  for (std::uint32_t trial = 0; trial < 40; ++trial) {
    Rng rng(30, "conv", 0, trial);
    const ConvGeometry g = random_geometry(rng);
    const bool bias = rng.coin();
    for (const int block : {1, 8, 16}) {
      check_against_reference(
          g, bias,
          {.block = block, .threads = 1 + static_cast<int>(rng.coin()), .accumulate = rng.coin()},
          trial);
      if (HasFatalFailure()) return;
    }
  }
}

// Weights gradients are summed over groups of four images: every remainder, and fewer images than a
// group.
TEST(Conv, MatchesTheReferenceAtEveryBatchSize) {
  for (std::int64_t n = 1; n <= 9; ++n) {
    for (const int block : {8, 16}) {
      const ConvGeometry g{.n = n,
                           .ic = 19,
                           .ih = 6,
                           .iw = 5,
                           .oc = 21,
                           .oh = 3,
                           .ow = 3,
                           .kh = 3,
                           .kw = 3,
                           .sh = 2,
                           .sw = 2,
                           .ph = 1,
                           .pw = 1};
      check_against_reference(g, true, {.block = block, .threads = 2, .accumulate = n % 2 == 0},
                              100);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Conv, MatchesTheReferenceOnShapesOfStockNets) {
  for (const ConvGeometry& g : stock_geometries()) {
    check_against_reference(g, g.oc == 255, {.block = ops::preferred_block(), .threads = 2}, 101);
    if (HasFatalFailure()) return;
  }
}

TEST(Conv, TheImageGroupIsAFunctionOfTheLayerAlone) {
  for (ConvGeometry g : stock_geometries()) {
    const std::int64_t group = ops::image_group(g);
    for (g.n = 1; g.n < 70; g.n = g.n * 3 + 1)
      EXPECT_EQ(ops::image_group(g), group) << to_string(g);
  }
}

}  // namespace
}  // namespace lantern::test
