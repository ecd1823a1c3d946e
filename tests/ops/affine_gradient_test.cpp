// Ops that are affine in their source once chance is fixed: for any two inputs,
// <d, f(x2) - f(x1)> = <J^T d, x2 - x1>, a difference of any size and exact.

#include <functional>

#include "ops/coord_conv/coord_conv.hpp"
#include "ops/dropout/drop_block.hpp"
#include "ops/op_runner.hpp"
#include "ops/sequence/sequence.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

struct AffineOp {
  std::string name;
  std::function<TensorId(OpRunner&, TensorId)> add;
};

std::shared_ptr<const graph::OpParams> none() { return std::make_shared<const graph::OpParams>(); }

TensorId slice(OpRunner& runner, TensorId x, std::int64_t first, std::int64_t count) {
  return runner.op(ops::kSliceImages,
                   std::make_shared<const ops::ImageRangeParams>(first, count, 4), {x},
                   "slice" + std::to_string(first))[0];
}

const std::vector<AffineOp>& affine_ops() {
  static const std::vector<AffineOp> kOps{
      {"drop_block",
       [](OpRunner& runner, TensorId x) {
         return runner.op(ops::kDropBlockForward,
                          std::make_shared<const ops::DropBlockParams>(0.9F, 3, 0, 6), {x}, "y")[0];
       }},
      {"coord_conv",
       [](OpRunner& runner, TensorId x) {
         return runner.op(ops::kCoordConvForward, none(), {x}, "y")[0];
       }},
      {"slice_images", [](OpRunner& runner, TensorId x) { return slice(runner, x, 1, 2); }},
      {"join_images",
       [](OpRunner& runner, TensorId x) {
         return runner.op(ops::kJoinImages, none(),
                          {slice(runner, x, 2, 2), slice(runner, x, 0, 2)}, "y")[0];
       }},
  };
  return kOps;
}

struct Result {
  Floats y, dx;
};

Result run(const RunnerOptions& options, const AffineOp& op, const Shape& shape, const Floats& x,
           const Floats& dy) {
  OpRunner runner(options);
  const TensorId src = runner.source("x", shape, x);
  const TensorId dst = op.add(runner, src);
  runner.keep(dst);
  const auto count = static_cast<std::size_t>(runner.graph().type(dst).shape.elements());
  runner.differentiate(
      {{dst, Floats(dy.begin(), dy.begin() + static_cast<std::ptrdiff_t>(count))}});
  runner.run({.seed = 5, .iteration = 60, .subdivision = 1, .max_iterations = 100});
  return {runner.value(dst), runner.gradient(src)};
}

TEST(AffineOps, HaveTheGradientOfTheirDifferences) {
  const Shape shape{4, 19, 5, 6};
  for_each_way([&](const RunnerOptions& options) {
    if (options.accumulate) return;  // the start of the gradient is no part of the difference
    for (const AffineOp& op : affine_ops()) {
      Rng rng(48, op.name);
      const Floats x1 = random_floats(rng, shape.elements());
      const Floats x2 = random_floats(rng, shape.elements());
      const Floats dy = random_floats(rng, shape.elements());
      const Result one = run(options, op, shape, x1, dy), two = run(options, op, shape, x2, dy);
      EXPECT_EQ(one.dx, two.dx) << op.name << " is not affine";
      double difference = 0, slope = 0, size = 0;
      for (std::size_t i = 0; i < one.y.size(); ++i)
        difference += double{dy[i]} * (double{two.y[i]} - double{one.y[i]});
      for (std::size_t i = 0; i < x1.size(); ++i) {
        slope += double{one.dx[i]} * (double{x2[i]} - double{x1[i]});
        size += std::abs(double{one.dx[i]});
      }
      EXPECT_NEAR(difference, slope, 1e-6 * size) << op.name;
      EXPECT_GT(size, 1) << op.name;
    }
  });
}

}  // namespace
}  // namespace lantern::test
