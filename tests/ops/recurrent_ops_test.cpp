// The ops that recurrent sections need beside the usual ones, against plain loops and differences.

#include "ops/finite_difference.hpp"
#include "ops/gates/gates.hpp"
#include "ops/gates/gates_ref.hpp"
#include "ops/linear/linear.hpp"
#include "ops/op_runner.hpp"
#include "ops/sequence/initial_state.hpp"
#include "ops/sequence/sequence.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

const std::vector<Shape> kShapes{{1, 1, 1, 1}, {2, 3, 4, 5}, {3, 16, 3, 3}, {2, 21, 2, 7}};

std::shared_ptr<const graph::OpParams> none() { return std::make_shared<const graph::OpParams>(); }

TEST(Blend, MatchesTheReference) {
  for_each_way([](const RunnerOptions& options) {
    for (const Shape& shape : kShapes) {
      Rng rng(1, "blend", 0, static_cast<std::uint32_t>(shape.elements()));
      const std::int64_t count = shape.elements();
      const Floats gate = random_floats(rng, count, 0, 1);
      const Floats a = random_floats(rng, count);
      const Floats b = random_floats(rng, count);
      const Floats dy = random_floats(rng, count);
      OpRunner runner(options);
      const TensorId g = runner.source("g", shape, gate);
      const TensorId x = runner.source("a", shape, a);
      const TensorId z = runner.source("b", shape, b);
      const TensorId y = runner.op(ops::kBlendForward, none(), {g, x, z}, "y")[0];
      runner.keep(y);
      runner.differentiate({{y, dy}});
      runner.run();
      Floats want(dy.size());
      Floats dg = initial_gradient(options, shape);
      Floats da = dg;
      Floats db = dg;
      ops::ref::blend_forward(count, gate.data(), a.data(), b.data(), want.data());
      ops::ref::blend_backward(count, gate.data(), a.data(), b.data(), dy.data(), dg.data(),
                               da.data(), db.data());
      expect_close(runner.value(y), want, 1e-6F, "y");
      expect_close(runner.gradient(g), dg, 1e-6F, "dg");
      expect_close(runner.gradient(x), da, 1e-6F, "da");
      expect_close(runner.gradient(z), db, 1e-6F, "db");
    }
  });
}

TEST(Blend, ReferenceGradientsAreTheDifferences) {
  Rng rng(2, "blend");
  constexpr std::int64_t kCount = 24;
  Values gate = random_values(rng, kCount, 0, 1);
  Values a = random_values(rng, kCount);
  Values b = random_values(rng, kCount);
  const Values d = random_values(rng, kCount);
  Values y(kCount);
  const auto loss = [&] {
    ops::ref::blend_forward(kCount, gate.data(), a.data(), b.data(), y.data());
    return dot(d, y);
  };
  double* const none = nullptr;
  const auto backward = [&](double* dg, double* da, double* db) {
    ops::ref::blend_backward(kCount, gate.data(), a.data(), b.data(), d.data(), dg, da, db);
  };
  expect_gradient("gate", gate, added(kCount, [&](double* g) { backward(g, none, none); }), loss);
  expect_gradient("a", a, added(kCount, [&](double* g) { backward(none, g, none); }), loss);
  expect_gradient("b", b, added(kCount, [&](double* g) { backward(none, none, g); }), loss);
}

TEST(Clamp, MatchesTheReference) {
  for_each_way([](const RunnerOptions& options) {
    for (const Shape& shape : kShapes) {
      Rng rng(3, "clamp", 0, static_cast<std::uint32_t>(shape.elements()));
      const std::int64_t count = shape.elements();
      const Floats x = random_floats(rng, count, -4, 4);
      const Floats dy = random_floats(rng, count);
      OpRunner runner(options);
      const TensorId src = runner.source("x", shape, x);
      const TensorId y = runner.op(ops::kClampForward,
                                   std::make_shared<const ops::FactorParams>(2.0F), {src}, "y")[0];
      runner.keep(y);
      runner.differentiate({{y, dy}});
      runner.run();
      Floats want(dy.size());
      Floats dx = initial_gradient(options, shape);
      ops::ref::clamp_forward(count, 2.0F, x.data(), want.data());
      ops::ref::clamp_backward(count, 2.0F, x.data(), dy.data(), dx.data());
      EXPECT_EQ(runner.value(y), want);
      expect_close(runner.gradient(src), dx, 1e-6F, "dx");
    }
  });
}

TEST(Clamp, ReferenceGradientsAreTheDifferences) {
  Rng rng(4, "clamp");
  constexpr std::int64_t kCount = 40;
  Values x = distinct_values(rng, kCount, 0.11);  // none within a step of the limit
  const Values d = random_values(rng, kCount);
  Values y(kCount);
  const auto loss = [&] {
    ops::ref::clamp_forward(kCount, 1.0, x.data(), y.data());
    return dot(d, y);
  };
  expect_gradient(
      "x", x,
      added(kCount,
            [&](double* g) { ops::ref::clamp_backward(kCount, 1.0, x.data(), d.data(), g); }),
      loss);
}

TEST(GradientFactor, LeavesTheValuesAndScalesTheGradient) {
  for_each_way([](const RunnerOptions& options) {
    const Shape shape{2, 19, 3, 2};
    Rng rng(5, "factor");
    const Floats x = random_floats(rng, shape.elements());
    const Floats dy = random_floats(rng, shape.elements());
    OpRunner runner(options);
    const TensorId src = runner.source("x", shape, x);
    const TensorId y = runner.op(ops::kGradientFactor,
                                 std::make_shared<const ops::FactorParams>(0.25F), {src}, "y")[0];
    runner.keep(y);
    runner.differentiate({{y, dy}});
    runner.run();
    Floats dx = initial_gradient(options, shape);
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += 0.25F * dy[i];
    EXPECT_EQ(runner.value(y), x);
    expect_close(runner.gradient(src), dx, 1e-6F, "dx");
  });
}

// Steps 0 and 2 of three are used, in the other order: what is joined is {step 2, step 0}.
TEST(TimeSteps, AreTakenApartAndJoined) {
  for_each_way([](const RunnerOptions& options) {
    for (const Shape& step : kShapes) {
      Shape whole = step;
      whole.set(0, 3 * step.n());
      Rng rng(6, "steps", 0, static_cast<std::uint32_t>(step.elements()));
      const Floats x = random_floats(rng, whole.elements());
      const Floats dy = random_floats(rng, 2 * step.elements());
      OpRunner runner(options);
      const TensorId src = runner.source("x", whole, x);
      const auto slice = [&](std::int64_t t) {
        return runner.op(
            ops::kSliceImages,
            std::make_shared<const ops::ImageRangeParams>(t * step.n(), step.n(), 3 * step.n()),
            {src}, "step" + std::to_string(t))[0];
      };
      const TensorId first = slice(0);
      const TensorId last = slice(2);
      const TensorId y = runner.op(ops::kJoinImages, none(), {last, first}, "y")[0];
      runner.keep(y);
      runner.differentiate({{y, dy}});
      runner.run();
      const auto count = static_cast<std::size_t>(step.elements());
      Floats want(2 * count);
      Floats dx = initial_gradient(options, whole);
      for (std::size_t i = 0; i < count; ++i) {
        want[i] = x[2 * count + i];
        want[count + i] = x[i];
        dx[2 * count + i] += dy[i];
        dx[i] += dy[count + i];
      }
      EXPECT_EQ(runner.value(y), want);
      expect_close(runner.gradient(src), dx, 1e-6F, "dx");
    }
  });
}

TEST(InitialState, IsZeroWhereASequenceBeginsAndElseTheCarriedOne) {
  for (const int block : {1, 16}) {
    const Shape shape{2, 5, 2, 3};
    Rng rng(7, "state");
    const Floats carried = random_floats(rng, shape.elements());
    OpRunner runner({.block = block});
    const TensorId state = runner.input("state", shape, carried);
    runner.graph().set_role(state, graph::Role::kState);
    const auto from = [&](std::shared_ptr<const graph::OpParams> params,
                          std::vector<TensorId> inputs, const std::string& name) {
      const TensorId y =
          runner.op(ops::kInitialState, std::move(params), std::move(inputs), name)[0];
      runner.keep(y);
      return y;
    };
    const TensorId zero = from(std::make_shared<const ops::InitialStateParams>(shape), {}, "zero");
    const TensorId always =
        from(std::make_shared<const ops::InitialStateParams>(shape), {state}, "always");
    const TensorId pairs = from(std::make_shared<const ops::InitialStateParams>(
                                    shape, ops::SequenceLength{.subdivisions = 4, .sequential = 2}),
                                {state}, "pairs");
    const Floats zeros(carried.size(), 0.0F);
    for (const int subdivision : {0, 1, 2, 3}) {
      runner.run({.subdivision = subdivision});
      EXPECT_EQ(runner.value(zero), zeros);
      EXPECT_EQ(runner.value(always), carried);
      EXPECT_EQ(runner.value(pairs), subdivision % 2 == 0 ? zeros : carried) << subdivision;
    }
  }
}

TEST(SequenceLength, FollowsItsThresholds) {
  const ops::SequenceLength length{
      .subdivisions = 8, .sequential = 4, .steps = {100, 200, 300}, .factors = {0.5F, 0.5F, 100}};
  EXPECT_EQ(length.at(1), 2);
  EXPECT_EQ(length.at(99), 2);
  EXPECT_EQ(length.at(100), 4);
  EXPECT_EQ(length.at(200), 8);
  EXPECT_EQ(length.at(300), 1);  // as many parts as subdivisions, no more
  EXPECT_EQ((ops::SequenceLength{.subdivisions = 4, .sequential = 4}.at(1)), 1);
  EXPECT_EQ((ops::SequenceLength{.subdivisions = 4, .sequential = 3}.at(1)), 1);
}

// A parameter that several ops read: their sums join within a mini-batch and over mini-batches,
// and the first mini-batch of an iteration forgets what was there.
TEST(SharedParameter, HasTheGradientOfAllItsReaders) {
  for (const int block : {1, 16}) {
    const Shape shape{3, 4, 1, 1};
    Rng rng(8, "shared");
    const Floats a = random_floats(rng, shape.elements());
    const Floats b = random_floats(rng, shape.elements());
    const Floats da = random_floats(rng, 3 * 5);
    const Floats db = random_floats(rng, 3 * 5);
    OpRunner runner({.block = block});
    const TensorId xa = runner.source("a", shape, a);
    const TensorId xb = runner.source("b", shape, b);
    const TensorId weights = runner.parameter("w", Shape{5, 4}, random_floats(rng, 20));
    const TensorId biases = runner.parameter("bias", Shape{5}, random_floats(rng, 5));
    const TensorId ya = runner.op(ops::kLinearForward, none(), {xa, weights, biases}, "ya")[0];
    const TensorId yb = runner.op(ops::kLinearForward, none(), {xb, weights, biases}, "yb")[0];
    runner.differentiate({{ya, da}, {yb, db}});
    Floats dw(20, 0.0F);
    Floats dbias(5, 0.0F);
    for (std::size_t n = 0; n < 3; ++n) {
      for (std::size_t o = 0; o < 5; ++o) {
        for (std::size_t i = 0; i < 4; ++i)
          dw[o * 4 + i] += da[n * 5 + o] * a[n * 4 + i] + db[n * 5 + o] * b[n * 4 + i];
        dbias[o] += da[n * 5 + o] + db[n * 5 + o];
      }
    }
    for (int iteration = 0; iteration < 2; ++iteration) {
      runner.run({.subdivision = 0});
      expect_close(runner.gradient(weights), dw, 1e-6F, "dw");
      expect_close(runner.gradient(biases), dbias, 1e-6F, "dbias");
      runner.run({.subdivision = 1});
      Floats twice = dw;
      for (float& value : twice) value *= 2;
      expect_close(runner.gradient(weights), twice, 1e-6F, "dw of two mini-batches");
    }
  }
}

}  // namespace
}  // namespace lantern::test
