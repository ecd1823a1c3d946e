// The convolutions of our own for inference programs, against the library's direct sums and against
// themselves.

#include "names.hpp"
#include "ops/activation/activation_op.hpp"
#include "ops/conv/winograd.hpp"
#include "ops/conv_run.hpp"

namespace lantern::test {
namespace {

using ops::Activation;
using ops::Epilogue;

struct Layer {
  ConvGeometry g;
  Epilogue epilogue{};
  std::int64_t channels = 0;  ///< of the source; 0: those that are read
  std::int64_t first = 0;     ///< channel that is read
  bool bias = true;
};

struct Result {
  Floats y, w;
  std::string kernel;
};

// `may_round` lets our kernels in. Images from `image` on, all of them by default.
Result convolved(const Layer& layer, bool may_round, const RunnerOptions& options,
                 std::int64_t image = 0, std::int64_t images = 0) {
  ConvGeometry g = layer.g;
  Rng rng(91, "own convolutions");
  const std::int64_t channels = layer.channels != 0 ? layer.channels : g.ic;
  const auto part = [&](const Shape& one) {
    Floats all = random_floats(rng, g.n * one.elements());
    if (images == 0) return all;
    return Floats(all.begin() + image * one.elements(),
                  all.begin() + (image + images) * one.elements());
  };
  const Floats source = part(Shape{1, channels, g.ih, g.iw});
  const Floats side = part(Shape{1, g.oc, g.oh, g.ow});
  const Floats weights = random_floats(rng, g.weights_count());
  const Floats biases = random_floats(rng, g.oc, -3, 3);
  if (images != 0) g.n = images;
  OpRunner runner(options);
  std::vector<TensorId> inputs{
      runner.source("x", Shape{g.n, channels, g.ih, g.iw}, source),
      runner.parameter("w", Shape{g.oc, g.ic / g.groups, g.kh, g.kw}, weights)};
  if (layer.bias) inputs.push_back(runner.parameter("b", Shape{g.oc}, biases));
  if (layer.epilogue.residual)
    inputs.push_back(runner.source("side", Shape{g.n, g.oc, g.oh, g.ow}, side));
  const TensorId y = runner.op(ops::kConvForward,
                               std::make_shared<const ops::ConvParams>(g, layer.bias, layer.first,
                                                                       layer.epilogue, may_round),
                               inputs, "y")[0];
  runner.keep(y);
  runner.run();
  Result result{runner.value(y), runner.value(inputs[1]), ""};
  EXPECT_EQ(result.w, weights) << "weights come back as they went in";
  for (const graph::SelectedOp& op : runner.executor().selected().ops) {
    if (op.op == "conv_forward") result.kernel = op.kernel;
  }
  return result;
}

RunnerOptions with_threads(int threads) {
  return {.block = ops::preferred_block(), .threads = threads};
}

// Built for another CPU than this, or run as if on one, there is nothing to test.
bool have_own() {
  return ops::preferred_block() == 16 && ops::winograd::schedule(square(1, 64, 26, 64, 3), 16, 1);
}

// Rounding of the transforms, in units of the rms of the result.
constexpr float kTolerance = 5e-5F;

std::vector<Layer> winograd_layers() {
  std::vector<Layer> layers;
  // Few and many weights, broken channel blocks, sides that tiles do and do not fill, several
  // pieces of channels.
  for (const ConvGeometry& g :
       {square(2, 16, 52, 32, 3), square(1, 64, 41, 48, 3), square(2, 40, 30, 24, 3),
        square(2, 128, 13, 255, 3), square(1, 200, 13, 80, 3), square(3, 256, 7, 256, 3),
        square(1, 512, 13, 64, 3), square(1, 32, 26, 16, 3)}) {
    layers.push_back({g});
  }
  ConvGeometry g = square(1, 32, 30, 32, 3);  // no padding
  g.ph = g.pw = 0;
  g.oh = g.ow = 28;
  layers.push_back({g});
  g = square(1, 64, 26, 64, 3);  // padding of one side, and a wide map
  g.iw = 61;
  g.pw = 0;
  g.ow = 59;
  layers.push_back({g});
  layers.push_back({square(2, 48, 26, 64, 3), {}, 112, 32});
  layers.push_back({.g = square(1, 64, 26, 64, 3), .bias = false});
  for (const Epilogue& epilogue :
       {Epilogue{.activation = Activation::kMish, .residual = true},
        Epilogue{.residual = true, .last = Activation::kLeaky},
        Epilogue{.activation = Activation::kLogistic},
        Epilogue{.activation = Activation::kHardMish, .last = Activation::kRelu}}) {
    layers.push_back({square(2, 32, 26, 40, 3), epilogue});
    layers.push_back({square(2, 256, 13, 72, 3), epilogue});
  }
  return layers;
}

std::vector<Layer> grouped_layers() {
  std::vector<Layer> layers;
  for (const std::int64_t channels : {2, 4, 8}) {
    for (const std::int64_t stride : {1, 2})
      layers.push_back({square(2, 64, 19, 64, 3, stride, 64 / channels)});
  }
  layers.push_back({square(3, 24, 9, 24, 3, 1, 6)});  // ends inside a channel block
  layers.push_back({square(1, 32, 5, 32, 5, 1, 8)});
  layers.push_back({square(1, 32, 11, 32, 1, 1, 4)});
  ConvGeometry dilated = square(1, 32, 20, 32, 3, 1, 8);
  dilated.dh = dilated.dw = dilated.ph = dilated.pw = 2;
  layers.push_back({dilated});
  layers.push_back({square(2, 32, 13, 32, 3, 1, 8), {}, 96, 48});
  layers.push_back({.g = square(1, 32, 13, 32, 3, 1, 8), .bias = false});
  for (const Epilogue& epilogue : {Epilogue{.activation = Activation::kSwish, .residual = true},
                                   Epilogue{.residual = true, .last = Activation::kLogistic}})
    layers.push_back({square(2, 24, 10, 24, 3, 1, 3), epilogue});
  return layers;
}

struct Kind {
  std::string name;  ///< that the kernels' begin with
  std::vector<Layer> (*layers)();
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

class OwnConvKinds : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!have_own()) GTEST_SKIP() << "needs AVX-512";
  }
};

TEST_P(OwnConvKinds, GiveTheSumsOfTheConvolution) {
  for (const Layer& layer : GetParam().layers()) {
    SCOPED_TRACE(to_string(layer.g) + layer.epilogue.describe());
    const Result want = convolved(layer, false, with_threads(2));
    const Result got = convolved(layer, true, with_threads(2));
    EXPECT_TRUE(want.kernel.starts_with("onednn")) << want.kernel;
    EXPECT_TRUE(got.kernel.starts_with(GetParam().name)) << got.kernel;
    expect_close(got.y, want.y, kTolerance, "y");
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(OwnConvKinds, BitsDependOnNeitherThreadsNorOtherImages) {
  for (const Layer& layer : GetParam().layers()) {
    SCOPED_TRACE(to_string(layer.g) + layer.epilogue.describe());
    const Floats one = convolved(layer, true, with_threads(1)).y;
    for (const int threads : {2, 3})
      ASSERT_EQ(convolved(layer, true, with_threads(threads)).y, one) << threads << " threads";
    Floats apart;
    for (std::int64_t image = 0; image < layer.g.n; ++image) {
      const Floats y = convolved(layer, true, with_threads(2), image, 1).y;
      apart.insert(apart.end(), y.begin(), y.end());
    }
    ASSERT_EQ(apart, one);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, OwnConvKinds,
                         ::testing::Values(Kind{"winograd", winograd_layers},
                                           Kind{"grouped", grouped_layers}),
                         kByName);

TEST(OwnConv, BothTilesAreTaken) {
  if (!have_own()) GTEST_SKIP() << "needs AVX-512";
  const auto results = [](const ConvGeometry& g) {
    return ops::winograd::schedule(g, 16, 2)->results;
  };
  EXPECT_EQ(results(square(1, 256, 7, 256, 3)), 2);
  EXPECT_EQ(results(square(1, 64, 52, 64, 3)), 4);
}

TEST(OwnConv, WeightsThatAnotherReadsStayWithTheLibrary) {
  const ConvGeometry g = square(1, 64, 26, 64, 3);
  Rng rng(92, "shared weights");
  OpRunner runner(with_threads(1));
  const TensorId x =
      runner.source("x", Shape{1, 64, 26, 26}, random_floats(rng, g.ic * g.ih * g.iw));
  const TensorId w =
      runner.parameter("w", Shape{64, 64, 3, 3}, random_floats(rng, g.weights_count()));
  const auto params = std::make_shared<const ops::ConvParams>(g, false, 0, Epilogue{}, true);
  const TensorId y = runner.op(ops::kConvForward, params, {x, w}, "y")[0];
  runner.keep(runner.op(ops::kConvForward, params, {y, w}, "z")[0]);
  runner.run();
  for (const graph::SelectedOp& op : runner.executor().selected().ops) {
    if (op.op == "conv_forward") {
      EXPECT_TRUE(op.kernel.starts_with("onednn")) << op.kernel;
    }
  }
}

}  // namespace
}  // namespace lantern::test
