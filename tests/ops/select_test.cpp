// What `select` does where the layouts of an op and of its tensors differ, and the small ops of
// batch statistics.

#include "ops/select.hpp"

#include "ops/batch_norm/cross_batch.hpp"
#include "ops/cost/cost.hpp"
#include "ops/max_pool/max_pool.hpp"
#include "ops/op_runner.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

// A cost writes the gradient of x first, in plain order; max pooling then adds to it in channel
// blocks.
TEST(Select, AddsToAGradientThatLiesInAnotherLayout) {
  for (const int block : {1, 8, 16}) {
    const Shape shape{2, 19, 4, 4};
    const std::int64_t count = 19 * 16;
    Rng rng(41, "select");
    const Floats x = random_floats(rng, shape.elements());
    const Floats truth = random_floats(rng, shape.elements());
    const Floats dy = random_floats(rng, shape.elements() / 4);
    OpRunner runner({.block = block, .threads = 2});
    const TensorId src = runner.source("x", shape, x);
    const ops::PoolGeometry g{
        .n = 2, .c = 19, .ih = 4, .iw = 4, .oh = 2, .ow = 2, .kh = 2, .kw = 2, .sh = 2, .sw = 2};
    const TensorId pooled = runner.op(
        ops::kMaxPoolForward, std::make_shared<const ops::PoolParams>(g, true), {src}, "pool")[0];
    const TensorId wanted = runner.input("truth", Shape{2, count}, truth);
    const auto cost = runner.op(ops::kCostLoss,
                                std::make_shared<const ops::CostParams>(ops::CostKind::kSse, 1.0F),
                                {src, wanted}, "cost");
    runner.graph().set_role(cost[1], graph::Role::kOutput);
    runner.differentiate({{pooled, dy}});
    runner.run();
    Floats dx(x.size());
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = truth[i] - x[i];
    for (std::int64_t plane = 0; plane < 38; ++plane) {
      for (std::int64_t window = 0; window < 4; ++window) {
        std::size_t best = 0;
        for (std::int64_t k = 0; k < 4; ++k) {
          const auto at = static_cast<std::size_t>(plane * 16 + (window / 2 * 2 + k / 2) * 4 +
                                                   window % 2 * 2 + k % 2);
          if (k == 0 || x[at] > x[best]) best = at;
        }
        dx[best] += dy[static_cast<std::size_t>(plane * 4 + window)];
      }
    }
    expect_close(runner.gradient(src), dx, 1e-6F, "dx");
  }
}

TEST(CrossBatchMerge, AveragesTheMomentsOfTheMiniBatchesSoFar) {
  const std::int64_t channels = 5;
  const std::int64_t values = 6;  // of one mini-batch and channel
  graph::Graph graph;
  const Shape shape{channels};
  const TensorId mean = graph.add_tensor("m", {shape}, graph::Role::kState);
  const TensorId variance = graph.add_tensor("v", {shape}, graph::Role::kState);
  const TensorId merged_mean = graph.add_tensor("M", {shape}, graph::Role::kState);
  const TensorId merged_variance = graph.add_tensor("V", {shape}, graph::Role::kState);
  const TensorId running_mean = graph.add_tensor("rm", {shape, DType::kF64}, graph::Role::kState);
  const TensorId running_square = graph.add_tensor("rq", {shape, DType::kF64}, graph::Role::kState);
  graph.add_op_to(ops::kCrossBatchMerge, std::make_shared<const ops::CrossBatchParams>(values),
                  {mean, variance}, {merged_mean, merged_variance, running_mean, running_square},
                  {false, false, true, true}, graph::ProgramKind::kMiniBatch, 0);
  ops::Selection selection = ops::select(graph, {});
  plan::Program program = plan::make_program(selection.selected);
  plan::check(selection.selected, program);
  exec::Executor executor(std::move(selection), std::move(program), 1);
  Rng rng(42, "cross");
  for (int iteration = 0; iteration < 2; ++iteration) {  // the second starts anew
    std::vector<double> means(channels, 0.0);
    std::vector<double> squares(channels, 0.0);
    for (int k = 0; k < 3; ++k) {
      Floats m;
      Floats v;
      for (std::size_t c = 0; c < channels; ++c) {
        const Floats x = random_floats(rng, values, -1, 2);
        double sum = 0;
        double square = 0;
        for (const float value : x) {
          sum += value;
          square += static_cast<double>(value) * value;
        }
        m.push_back(static_cast<float>(sum / values));
        v.push_back(static_cast<float>(square / values - sum / values * sum / values));
        means[c] += sum / values;
        squares[c] += std::max(square / (values - 1), sum / values * sum / values);
      }
      executor.write(mean, m);
      executor.write(variance, v);
      executor.run(graph::ProgramKind::kMiniBatch, {.subdivision = k});
      for (std::size_t c = 0; c < channels; ++c) {
        const double average = means[c] / (k + 1);
        EXPECT_NEAR(executor.read(merged_mean)[c], average, 1e-6);
        EXPECT_NEAR(executor.read(merged_variance)[c],
                    std::max(0.0, squares[c] / (k + 1) - average * average), 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace lantern::test
