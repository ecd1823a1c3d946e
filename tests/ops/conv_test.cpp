// Convolution kernels of the engine against the reference loops, which run in double.

#include "ops/conv/conv.hpp"

#include "ops/conv/conv_ref.hpp"
#include "ops/op_runner.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;
using ops::ConvGeometry;
using Doubles = std::vector<double>;

Doubles widen(const Floats& values) { return {values.begin(), values.end()}; }
Floats narrow(const Doubles& values) {
  Floats floats(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) floats[i] = static_cast<float>(values[i]);
  return floats;
}

std::string to_string(const ConvGeometry& g) {
  const auto size = [](std::int64_t h, std::int64_t w) {
    return std::to_string(h) + "x" + std::to_string(w);
  };
  return "n" + std::to_string(g.n) + " " + std::to_string(g.ic) + "x" + size(g.ih, g.iw) + " -> " +
         std::to_string(g.oc) + "x" + size(g.oh, g.ow) + " kernel " + size(g.kh, g.kw) +
         " stride " + size(g.sh, g.sw) + " pad " + size(g.ph, g.pw) + " dilation " +
         size(g.dh, g.dw) + " groups " + std::to_string(g.groups);
}

// Output sizes as the cfg format has them: what the padding on both sides gives, rows left over
// stay unread.
ConvGeometry random_geometry(Rng& rng) {
  ConvGeometry g;
  g.n = rng.uniform_int(1, 9);
  switch (rng.uniform_int(0, 3)) {
    case 0:  // depthwise
      g.groups = rng.uniform_int(1, 35);
      g.ic = g.oc = g.groups;
      break;
    case 1:
      g.groups = rng.uniform_int(2, 4);
      g.ic = g.groups * rng.uniform_int(1, 9);
      g.oc = g.groups * rng.uniform_int(1, 9);
      break;
    default:
      g.ic = rng.uniform_int(1, 35);
      g.oc = rng.uniform_int(1, 35);
  }
  const auto side = [&](std::int64_t& extent, std::int64_t& out, std::int64_t& kernel,
                        std::int64_t& stride, std::int64_t& pad, std::int64_t& dilation) {
    kernel = rng.uniform_int(0, 4) == 0 ? 5 : rng.uniform_int(1, 3);
    stride = rng.uniform_int(1, 3);
    dilation = rng.uniform_int(0, 2) == 0 ? 2 : 1;
    const std::int64_t reach = (kernel - 1) * dilation + 1;
    pad = rng.uniform_int(0, reach / 2);
    extent = std::max<std::int64_t>(1, reach - 2 * pad) + rng.uniform_int(0, 7);
    out = (extent + 2 * pad - reach) / stride + 1;
  };
  side(g.ih, g.oh, g.kh, g.sh, g.ph, g.dh);
  side(g.iw, g.ow, g.kw, g.sw, g.pw, g.dw);
  return g;
}

struct ConvRun {
  ConvRun(const ConvGeometry& geometry, bool with_bias, std::uint32_t trial)
      : g(geometry), bias(with_bias) {
    Rng rng(31, "conv values", 0, trial);
    x = random_floats(rng, g.n * g.ic * g.ih * g.iw);
    w = random_floats(rng, g.weights_count());
    b = random_floats(rng, g.oc);
    dy = random_floats(rng, g.n * g.oc * g.oh * g.ow);
  }

  ConvGeometry g;
  bool bias;
  Floats x, w, b, dy;

  struct Result {
    Floats y, dx, dw, db;
  };

  std::unique_ptr<OpRunner> make(const RunnerOptions& options) {
    auto runner = std::make_unique<OpRunner>(options);
    src = runner->source("x", Shape{g.n, g.ic, g.ih, g.iw}, x);
    std::vector<TensorId> inputs{src};
    inputs.push_back(weights = runner->parameter("w", Shape{g.oc, g.ic / g.groups, g.kh, g.kw}, w));
    if (bias) inputs.push_back(biases = runner->parameter("b", Shape{g.oc}, b));
    dst = runner->op(ops::kConvForward, std::make_shared<const ops::ConvParams>(g, bias), inputs,
                     "y")[0];
    runner->keep(dst);
    runner->differentiate({{dst, dy}});
    return runner;
  }
  Result result(const OpRunner& runner) const {
    Result r{runner.value(dst), runner.gradient(src), runner.gradient(weights), {}};
    if (bias) r.db = runner.gradient(biases);
    return r;
  }
  Result run(const RunnerOptions& options) {
    const auto runner = make(options);
    runner->run();
    return result(*runner);
  }

  TensorId src{}, weights{}, biases{}, dst{};
};

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

// What stock nets are made of: images of 3 channels, 1x1 and 3x3 over whole and broken channel
// blocks.
const std::vector<ConvGeometry> kStock{
    {.n = 3,
     .ic = 3,
     .ih = 20,
     .iw = 20,
     .oc = 16,
     .oh = 20,
     .ow = 20,
     .kh = 3,
     .kw = 3,
     .ph = 1,
     .pw = 1},
    {.n = 3,
     .ic = 3,
     .ih = 20,
     .iw = 20,
     .oc = 32,
     .oh = 10,
     .ow = 10,
     .kh = 3,
     .kw = 3,
     .sh = 2,
     .sw = 2,
     .ph = 1,
     .pw = 1},
    {.n = 5,
     .ic = 32,
     .ih = 12,
     .iw = 12,
     .oc = 48,
     .oh = 12,
     .ow = 12,
     .kh = 3,
     .kw = 3,
     .ph = 1,
     .pw = 1},
    {.n = 6, .ic = 64, .ih = 9, .iw = 7, .oc = 255, .oh = 9, .ow = 7},
    {.n = 2, .ic = 128, .ih = 13, .iw = 13, .oc = 32, .oh = 13, .ow = 13},
    {.n = 4,
     .ic = 32,
     .ih = 12,
     .iw = 12,
     .oc = 32,
     .oh = 6,
     .ow = 6,
     .groups = 32,
     .kh = 3,
     .kw = 3,
     .sh = 2,
     .sw = 2,
     .ph = 1,
     .pw = 1},
};

TEST(Conv, MatchesTheReferenceOnShapesOfStockNets) {
  for (const ConvGeometry& g : kStock) {
    check_against_reference(g, g.oc == 255, {.block = ops::preferred_block(), .threads = 2}, 101);
    if (HasFatalFailure()) return;
  }
}

TEST(Conv, TheImageGroupIsAFunctionOfTheLayerAlone) {
  for (ConvGeometry g : kStock) {
    const std::int64_t group = ops::image_group(g);
    for (g.n = 1; g.n < 70; g.n = g.n * 3 + 1)
      EXPECT_EQ(ops::image_group(g), group) << to_string(g);
  }
}

std::vector<ConvGeometry> bit_exact_geometries() {
  std::vector<ConvGeometry> all = kStock;
  for (std::uint32_t trial = 0; trial < 12; ++trial) {
    Rng rng(32, "conv bits", 0, trial);
    all.push_back(random_geometry(rng));
  }
  return all;
}

TEST(Conv, TheThreadCountChangesNoBitOfOutputsAndSourceGradients) {
  std::uint32_t trial = 0;
  for (const ConvGeometry& g : bit_exact_geometries()) {
    SCOPED_TRACE(to_string(g));
    for (const bool accumulate : {false, true}) {
      ConvRun conv(g, true, trial++);
      const auto one =
          conv.run({.block = ops::preferred_block(), .threads = 1, .accumulate = accumulate});
      const auto two =
          conv.run({.block = ops::preferred_block(), .threads = 2, .accumulate = accumulate});
      ASSERT_EQ(one.y, two.y);
      ASSERT_EQ(one.dx, two.dx);
      ASSERT_EQ(one.db, two.db);
    }
  }
}

TEST(Conv, RepeatedRunsGiveTheSameBits) {
  std::uint32_t trial = 50;
  for (const ConvGeometry& g : bit_exact_geometries()) {
    SCOPED_TRACE(to_string(g));
    ConvRun conv(g, true, trial++);
    const auto first = conv.run({.block = ops::preferred_block(), .threads = 2});
    // Another thread count in between must not leak into what is selected next.
    conv.run({.block = ops::preferred_block(), .threads = 1});
    const auto again = conv.run({.block = ops::preferred_block(), .threads = 2});
    ASSERT_EQ(first.dw, again.dw);
    ASSERT_EQ(first.dx, again.dx);
  }
}

// A mini-batch may be cut into calls of fewer images: outputs and source gradients of an image
// depend on it alone.
TEST(Conv, OneImageAtATimeGivesTheBitsOfTheWholeBatch) {
  std::uint32_t trial = 80;
  for (const ConvGeometry& g : bit_exact_geometries()) {
    SCOPED_TRACE(to_string(g));
    ConvRun whole(g, true, trial++);
    const RunnerOptions options{.block = ops::preferred_block(), .threads = 2};
    const auto all = whole.run(options);
    ConvGeometry single = g;
    single.n = 1;
    const auto part = [&](const Floats& values, std::int64_t image) {
      const auto size = static_cast<std::ptrdiff_t>(values.size()) / g.n;
      return Floats(values.begin() + image * size, values.begin() + (image + 1) * size);
    };
    for (std::int64_t image = 0; image < g.n; ++image) {
      ConvRun one(single, true, 0);
      one.x = part(whole.x, image);
      one.dy = part(whole.dy, image);
      one.w = whole.w;
      one.b = whole.b;
      const auto r = one.run(options);
      ASSERT_EQ(r.y, part(all.y, image)) << "image " << image;
      ASSERT_EQ(r.dx, part(all.dx, image)) << "image " << image;
    }
  }
}

}  // namespace
}  // namespace lantern::test
