// Steps of momentum SGD against the reference, and the search for gradients that are not finite.

#include "ops/sgd/sgd.hpp"

#include <limits>

#include "ops/conv/conv.hpp"
#include "ops/op_runner.hpp"
#include "ops/sgd/sgd_ref.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

std::unique_ptr<exec::Executor> compile(const graph::Graph& graph, int threads) {
  ops::Selection selection = ops::select(graph, {.threads = threads});
  plan::Program program = plan::make_program(selection.selected);
  plan::check(selection.selected, program);
  return std::make_unique<exec::Executor>(std::move(selection), std::move(program), threads);
}

struct Steps {
  Floats w, buffer;
};

// Six steps of random gradients; `expected` has what the reference makes of them.
Steps run_steps(const ops::SgdParams& params, std::int64_t count, int threads, Steps& expected) {
  graph::Graph graph;
  const Shape shape{count};
  const TensorId gradient = graph.add_tensor("d", {shape}, graph::Role::kParameterGradient);
  const TensorId w = graph.add_tensor("w", {shape}, graph::Role::kParameter);
  const TensorId buffer = graph.add_tensor("m", {shape}, graph::Role::kState);
  graph.add_op_to(ops::kSgdStep, std::make_shared<const ops::SgdParams>(params), {gradient},
                  {w, buffer}, {true, true}, graph::ProgramKind::kUpdate, 0);
  const auto executor = compile(graph, threads);
  Rng rng(91, "sgd", 0, static_cast<std::uint32_t>(count));
  expected = {random_floats(rng, count), Floats(static_cast<std::size_t>(count), 0.0F)};
  executor->write(w, expected.w);
  for (std::int64_t iteration = 1; iteration <= 6; ++iteration) {
    const Floats d = random_floats(rng, count, -8, 8);
    const float rate = 0.01F * static_cast<float>(iteration);
    executor->write(gradient, d);
    executor->run(graph::ProgramKind::kUpdate, {.iteration = iteration,
                                                .learning_rate = rate,
                                                .momentum = 0.8F,
                                                .decay = 0.05F,
                                                .batch = 4});
    EXPECT_EQ(executor->read(gradient), d);
    if (iteration < params.first_iteration) continue;
    ops::ref::sgd_step<float>({.lr = static_cast<double>(rate) * params.rate_factor,
                               .momentum = 0.8,
                               .decay = params.decays ? 0.05 : 0,
                               .batch = 4,
                               .limit = params.limit,
                               .reverse = params.reverse,
                               .clip = params.clip},
                              count, d.data(), expected.w.data(), expected.buffer.data());
  }
  return {executor->read(w), executor->read(buffer)};
}

TEST(SgdStep, MatchesTheReferenceOverSeveralUpdates) {
  for (const std::int64_t count : {1, 15, 16, 17, 333, 20011}) {
    for (int kind = 0; kind < 6; ++kind) {
      SCOPED_TRACE(::testing::Message() << count << " values, kind " << kind);
      ops::SgdParams params;
      params.decays = kind != 1;
      if (kind == 2) params.rate_factor = 2.5F;
      if (kind == 3) params.clip = 0.7F;
      if (kind == 4) params.first_iteration = 3;
      if (kind == 5) params.reverse = 0.5F;
      Steps expected, again;
      const Steps one = run_steps(params, count, 1, expected);
      expect_close(one.w, expected.w, 1e-5F, "w");
      expect_close(one.buffer, expected.buffer, 1e-5F, "buffer");
      const Steps two = run_steps(params, count, 2, again);
      EXPECT_EQ(one.w, two.w);
      EXPECT_EQ(one.buffer, two.buffer);
    }
  }
}

// Weights of a convolution lie as the library wants them; the step must meet every value once.
TEST(SgdStep, UpdatesConvolutionWeightsInTheirOwnLayout) {
  const ops::ConvGeometry g{.n = 2,
                            .ic = 19,
                            .ih = 5,
                            .iw = 6,
                            .oc = 21,
                            .oh = 5,
                            .ow = 6,
                            .kh = 3,
                            .kw = 3,
                            .ph = 1,
                            .pw = 1};
  Rng rng(92, "sgd conv");
  Floats w = random_floats(rng, g.weights_count());
  Floats buffer(w.size(), 0.0F);
  OpRunner runner({.block = ops::preferred_block(), .threads = 2});
  const Shape shape{21, 19, 3, 3};
  const TensorId src = runner.source("x", Shape{2, 19, 5, 6}, random_floats(rng, 2LL * 19 * 5 * 6));
  const TensorId weights = runner.parameter("w", shape, w);
  const TensorId dst = runner.op(
      ops::kConvForward, std::make_shared<const ops::ConvParams>(g, false), {src, weights}, "y")[0];
  runner.differentiate({{dst, random_floats(rng, 2LL * 21 * 5 * 6)}});
  const TensorId momentum = runner.graph().add_tensor("m", {shape}, graph::Role::kState);
  auto params = std::make_shared<ops::SgdParams>();
  params->decays = true;
  runner.graph().add_op_to(ops::kSgdStep, params, {*runner.graph().find("d_w")},
                           {weights, momentum}, {true, true}, graph::ProgramKind::kUpdate, 0);
  runner.run();  // feeds the weights, so only once
  for (int step = 0; step < 3; ++step) {
    const Floats d = runner.gradient(weights);
    runner.executor().run(graph::ProgramKind::kUpdate,
                          {.learning_rate = 0.02F, .momentum = 0.9F, .decay = 0.01F, .batch = 2});
    ops::ref::sgd_step<float>({.lr = 0.02, .momentum = 0.9, .decay = 0.01, .batch = 2},
                              g.weights_count(), d.data(), w.data(), buffer.data());
    expect_close(runner.value(weights), w, 1e-5F, "w");
    expect_close(runner.value(momentum), buffer, 1e-5F, "buffer");
  }
}

TEST(FiniteCheck, FindsEveryBadValueInItsTensor) {
  const std::vector<std::int64_t> counts{1, 7, 16, 9001, 20000};
  for (const int threads : {1, 2}) {
    graph::Graph graph;
    std::vector<TensorId> gradients;
    for (const std::int64_t count : counts) {
      gradients.push_back(graph.add_tensor("d" + std::to_string(count), {Shape{count}},
                                           graph::Role::kParameterGradient));
    }
    const TensorId flags = graph.add_tensor(
        "flags", {Shape{static_cast<std::int64_t>(counts.size())}}, graph::Role::kOutput);
    graph.add_op_to(ops::kFiniteCheck, std::make_shared<const graph::OpParams>(), gradients,
                    {flags}, {}, graph::ProgramKind::kCheck, -1);
    const auto executor = compile(graph, threads);
    Rng rng(93, "finite");
    std::vector<Floats> values;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      // Numbers whose sum overflows are finite all the same.
      values.push_back(random_floats(rng, counts[i], -1e38F, 1e38F));
      executor->write(gradients[i], values[i]);
    }
    const auto check = [&] {
      executor->run(graph::ProgramKind::kCheck, {});
      return executor->read(flags);
    };
    const Floats clean(counts.size(), 0.0F);
    ASSERT_EQ(check(), clean);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      for (const std::int64_t at : {std::int64_t{0}, counts[i] / 2, counts[i] - 1}) {
        for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
          Floats broken = values[i];
          broken[static_cast<std::size_t>(at)] = bad;
          executor->write(gradients[i], broken);
          Floats want = clean;
          want[i] = 1;
          ASSERT_EQ(check(), want)
              << bad << " at " << at << " of " << counts[i] << ", threads " << threads;
        }
      }
      executor->write(gradients[i], values[i]);
    }
    ASSERT_EQ(check(), clean);
  }
}

}  // namespace
}  // namespace lantern::test
