// Activations of the engine, forward and backward, against the reference formulas in double.

#include "ops/activation/activation_op.hpp"

#include "ops/activation/activation_ref.hpp"
#include "ops/op_runner.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;
using ops::Activation;

// Multiples of 1/64, so that single precision falls on the same side of every kink as double.
Floats grid_values(Rng& rng, std::int64_t count) {
  Floats values(static_cast<std::size_t>(count));
  for (float& v : values) v = static_cast<float>(rng.uniform_int(-640, 640)) / 64.0F;
  for (float& v : values) {
    if (rng.uniform_int(0, 3) == 0) v = std::round(v);  // the kinks, and ties between channels
  }
  return values;
}

class ActivationTest : public ::testing::TestWithParam<Activation> {};

TEST_P(ActivationTest, MatchesTheReference) {
  const Activation kind = GetParam();
  for_each_way([&](const RunnerOptions& options) {
    for (const Shape& shape :
         {Shape{1, 1, 1, 1}, Shape{2, 3, 4, 5}, Shape{1, 16, 5, 3}, Shape{2, 37, 3, 4}}) {
      Rng rng(81, "activation", static_cast<std::uint64_t>(kind),
              static_cast<std::uint32_t>(shape.elements()));
      const Floats x = grid_values(rng, shape.elements());
      const Floats dy = random_floats(rng, shape.elements());
      OpRunner runner(options);
      const TensorId src = runner.source("x", shape, x);
      const TensorId dst =
          runner.op(ops::kActivationForward, std::make_shared<const ops::ActivationParams>(kind),
                    {src}, "y")[0];
      runner.keep(dst);
      runner.differentiate({{dst, dy}});
      runner.run();
      const std::vector<double> wide(x.begin(), x.end());
      const std::vector<double> direction(dy.begin(), dy.end());
      std::vector<double> y(wide.size());
      const Floats start = initial_gradient(options, shape);
      std::vector<double> dx(start.begin(), start.end());
      const std::int64_t spatial = shape.h() * shape.w();
      ops::ref::activation_forward(kind, wide.data(), y.data(), shape.n(), shape.c(), spatial);
      ops::ref::activation_backward(kind, wide.data(), direction.data(), dx.data(), shape.n(),
                                    shape.c(), spatial);
      const Floats got_y = runner.value(dst);
      const Floats got_dx = runner.gradient(src);
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_NEAR(got_y[i], y[i], 5e-7 * std::max(1.0, std::abs(y[i]))) << "y at x = " << x[i];
        ASSERT_NEAR(got_dx[i], dx[i], 3e-6) << "dx at x = " << x[i];
      }
    }
  });
}

std::vector<Activation> all_kinds() {
  std::vector<Activation> kinds;
  for (const ops::ActivationName& entry : ops::kActivationNames) kinds.push_back(entry.value);
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(EveryKind, ActivationTest, ::testing::ValuesIn(all_kinds()),
                         [](const auto& test) { return std::string(ops::to_string(test.param)); });

}  // namespace
}  // namespace lantern::test
