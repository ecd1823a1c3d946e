// What a convolution does with its sums on the way, against ops of their own behind it.

#include "ops/activation/activation_op.hpp"
#include "ops/add/add.hpp"
#include "ops/conv_run.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;
using ops::Activation;
using ops::Epilogue;

Floats convolved(const ops::ConvGeometry& g, const Epilogue& epilogue, bool on_the_way,
                 const RunnerOptions& options) {
  Rng rng(73, "epilogue");
  OpRunner runner(options);
  const Shape out{g.n, g.oc, g.oh, g.ow};
  const TensorId x = runner.source("x", Shape{g.n, g.ic, g.ih, g.iw},
                                   random_floats(rng, g.n * g.ic * g.ih * g.iw));
  const TensorId w = runner.parameter("w", Shape{g.oc, g.ic / g.groups, g.kh, g.kw},
                                      random_floats(rng, g.weights_count()));
  const TensorId b = runner.parameter("b", Shape{g.oc}, random_floats(rng, g.oc, -3, 3));
  const TensorId side = runner.source("side", out, random_floats(rng, out.elements()));
  std::vector<TensorId> inputs{x, w, b};
  if (on_the_way && epilogue.residual) inputs.push_back(side);
  TensorId y = runner.op(
      ops::kConvForward,
      std::make_shared<const ops::ConvParams>(g, true, 0, on_the_way ? epilogue : Epilogue{}),
      inputs, "conv")[0];
  const auto activate = [&](Activation kind) {
    if (kind == Activation::kLinear) return;
    y = runner.op(ops::kActivationForward, std::make_shared<const ops::ActivationParams>(kind), {y},
                  "act")[0];
  };
  if (!on_the_way) {
    activate(epilogue.activation);
    if (epilogue.residual) {
      y = runner.op(ops::kAddForward, std::make_shared<const graph::OpParams>(), {y, side},
                    "sum")[0];
    }
    activate(epilogue.last);
  }
  runner.keep(y);
  runner.run();
  return runner.value(y);
}

void expect_equal(const ops::ConvGeometry& g, const Epilogue& epilogue) {
  for (const int block : {1, 8, 16}) {
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(::testing::Message()
                   << epilogue.describe() << ", " << g.ic << " to " << g.oc << ", groups "
                   << g.groups << ", block " << block << ", threads " << threads);
      const RunnerOptions options{.block = block, .threads = threads};
      expect_close(convolved(g, epilogue, true, options), convolved(g, epilogue, false, options),
                   1e-5F, "y");
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Epilogue, EveryActivationOnTheWay) {
  for (const ops::ActivationName& entry : ops::kActivationNames) {
    if (ops::mixes_channels(entry.value)) continue;
    for (const bool residual : {false, true})
      expect_equal(square(3, 32, 12, 24, 3), {.activation = entry.value, .residual = residual});
  }
}

TEST(Epilogue, SumsAndWhatFollowsThemForAllKindsOfConvolutions) {
  for (const ops::ConvGeometry& g : stock_geometries()) {
    expect_equal(g, {.activation = Activation::kMish, .residual = true});
    expect_equal(g, {.residual = true, .last = Activation::kLeaky});
    expect_equal(g, {.activation = Activation::kHardMish, .last = Activation::kRelu});
    expect_equal(g, {.activation = Activation::kLogistic});
  }
  // Neither channel count is one that the fast kernels take.
  expect_equal(square(2, 5, 9, 7, 3), {.activation = Activation::kLogistic, .residual = true});
}

}  // namespace
}  // namespace lantern::test
