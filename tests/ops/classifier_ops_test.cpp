// [connected], [softmax], [cost] against the reference templates.

#include "ops/activation/activation_op.hpp"
#include "ops/cost/cost.hpp"
#include "ops/linear/linear.hpp"
#include "ops/linear/linear_ref.hpp"
#include "ops/op_runner.hpp"
#include "ops/softmax/softmax.hpp"
#include "ops/softmax/softmax_ref.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

std::vector<double> costs_of(OpRunner& runner, TensorId tensor, std::int64_t images) {
  const auto bytes = runner.executor().bytes(tensor);
  std::vector<double> values(static_cast<std::size_t>(images));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  return values;
}

TEST(Linear, MatchesTheReference) {
  for_each_way([](const RunnerOptions& options) {
    for (const Shape& shape :
         {Shape{1, 1, 1, 1}, Shape{3, 5, 2, 3}, Shape{9, 35, 1, 1}, Shape{4, 70, 3, 4}}) {
      for (const bool biased : {false, true}) {
        const std::int64_t in = shape.elements() / shape.n();
        const std::int64_t out = 7;
        Rng rng(13, "linear", 0, static_cast<std::uint32_t>(shape.elements()));
        const Floats x = random_floats(rng, shape.elements());
        const Floats w = random_floats(rng, in * out);
        const Floats bias = random_floats(rng, out);
        const Floats dy = random_floats(rng, shape.n() * out);
        OpRunner runner(options);
        const TensorId src = runner.source("x", shape, x);
        const TensorId weights = runner.parameter("w", Shape{out, in}, w);
        std::vector<TensorId> inputs{src, weights};
        if (biased) inputs.push_back(runner.parameter("b", Shape{out}, bias));
        const TensorId dst = runner.op(ops::kLinearForward,
                                       std::make_shared<const graph::OpParams>(), inputs, "y")[0];
        runner.keep(dst);
        runner.differentiate({{dst, dy}});
        Floats y(dy.size());
        Floats dx = initial_gradient(options, shape);
        Floats dw(w.size());
        Floats db(bias.size());
        ops::ref::linear_forward(shape.n(), in, out, x.data(), w.data(),
                                 biased ? bias.data() : nullptr, y.data());
        ops::ref::linear_backward_data(shape.n(), in, out, dy.data(), w.data(), dx.data());
        // The first mini-batch of an iteration overwrites the gradients of parameters, the next one
        // adds.
        for (const int subdivision : {0, 1}) {
          runner.run({.subdivision = subdivision});
          ops::ref::linear_backward_weights(shape.n(), in, out, x.data(), dy.data(), dw.data(),
                                            db.data());
          expect_close(runner.value(dst), y, 2e-5F, "y");
          expect_close(runner.gradient(src), dx, 1e-5F, "dx");
          expect_close(runner.gradient(weights), dw, 1e-5F, "dw");
          if (biased) expect_close(runner.gradient(inputs[2]), db, 1e-5F, "db");
        }
        runner.run({.subdivision = 0});
        for (float& v : dw) v /= 2;
        expect_close(runner.gradient(weights), dw, 1e-5F, "dw of a new iteration");
      }
    }
  });
}

TEST(ClampGradient, PassesValuesAndClampsGradients) {
  for_each_way([](const RunnerOptions& options) {
    const Shape shape{2, 19, 1, 1};
    Rng rng(14, "clamp");
    const Floats x = random_floats(rng, shape.elements());
    const Floats dy = random_floats(rng, shape.elements(), -3, 3);
    OpRunner runner(options);
    const TensorId src = runner.source("x", shape, x);
    const TensorId dst =
        runner.op(ops::kClampGradient, std::make_shared<const graph::OpParams>(), {src}, "y")[0];
    runner.keep(dst);
    runner.differentiate({{dst, dy}});
    runner.run();
    Floats dx = initial_gradient(options, shape);
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += std::clamp(dy[i], -1.0F, 1.0F);
    EXPECT_EQ(runner.value(dst), x);
    EXPECT_EQ(runner.gradient(src), dx);
  });
}

TEST(SoftmaxLoss, MatchesTheReferenceAndDoublesTheGradientBeforeACost) {
  for_each_way([](const RunnerOptions& options) {
    for (const std::int64_t groups : {1, 3}) {
      for (const bool with_cost : {false, true}) {
        const Shape shape{3, 21, 1, 2};
        const std::int64_t count = 42;
        const float temperature = 1.5F;
        Rng rng(15, "softmax", static_cast<std::uint64_t>(groups));
        const Floats x = random_floats(rng, shape.elements(), -4, 4);
        Floats truth(x.size(), 0.0F);
        for (std::int64_t image = 0; image < 3; ++image) {
          truth[static_cast<std::size_t>(image * count + rng.uniform_int(0, count - 1))] = 1;
        }
        truth[4] = -1234;  // left out
        OpRunner runner(options);
        const TensorId src = runner.source("x", shape, x);
        const TensorId wanted = runner.input("truth", Shape{3, count}, truth);
        const auto outputs = runner.op(
            ops::kSoftmaxLoss, std::make_shared<const ops::SoftmaxParams>(groups, temperature),
            {src, wanted}, "p");
        runner.graph().set_role(outputs[2], graph::Role::kOutput);
        runner.keep(outputs[0]);
        runner.keep(outputs[1]);
        if (with_cost) {
          const auto cost = runner.op(
              ops::kCostLoss, std::make_shared<const ops::CostParams>(ops::CostKind::kMasked, 1.0F),
              {outputs[0], wanted}, "cost");
          runner.graph().set_role(cost[1], graph::Role::kOutput);
        }
        runner.differentiate({});
        runner.run();
        Floats p(x.size());
        Floats delta(x.size());
        const std::vector<std::int64_t> sizes(static_cast<std::size_t>(groups), count / groups);
        ops::ref::softmax_forward<float>(3, count, sizes, temperature, x.data(), p.data());
        for (std::int64_t image = 0; image < 3; ++image) {
          const double cost =
              ops::ref::softmax_loss(count, p.data() + image * count, truth.data() + image * count,
                                     delta.data() + image * count);
          EXPECT_NEAR(costs_of(runner, outputs[2], 3)[static_cast<std::size_t>(image)], cost, 1e-5);
        }
        Floats dx = initial_gradient(options, shape);
        for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += (with_cost ? 2 : 1) * delta[i];
        expect_close(runner.value(outputs[0]), p, 1e-5F, "p");
        expect_close(runner.value(outputs[1]), delta, 1e-5F, "delta");
        expect_close(runner.gradient(src), dx, 1e-5F, "dx");
      }
    }
  });
}

TEST(Softmax, OverTheChannelsOfEveryPixelMatchesTheReference) {
  for_each_way([](const RunnerOptions& options) {
    const Shape shape{2, 19, 3, 2};
    Rng rng(18, "spatial");
    const Floats x = random_floats(rng, shape.elements(), -4, 4);
    OpRunner runner(options);
    const TensorId src = runner.source("x", shape, x);
    const TensorId dst =
        runner.op(ops::kSoftmaxForward, std::make_shared<const ops::SoftmaxParams>(1, 0.7F, true),
                  {src}, "p")[0];
    runner.keep(dst);
    runner.run();
    Floats p(x.size());
    ops::ref::softmax_spatial_forward<float>(2, 19, 6, 0.7F, x.data(), p.data());
    expect_close(runner.value(dst), p, 1e-5F, "p");
  });
}

TEST(Cost, MatchesTheReference) {
  for_each_way([](const RunnerOptions& options) {
    for (const auto kind : {ops::CostKind::kSse, ops::CostKind::kMasked, ops::CostKind::kSmooth}) {
      const Shape shape{2, 13, 2, 3};
      const std::int64_t count = 78;
      Rng rng(16, "cost", static_cast<std::uint64_t>(kind));
      const Floats x = random_floats(rng, shape.elements(), -2, 2);
      Floats truth = random_floats(rng, shape.elements(), -2, 2);
      truth[3] = truth[100] = -1234;
      OpRunner runner(options);
      const TensorId src = runner.source("x", shape, x);
      const TensorId wanted = runner.input("truth", Shape{2, count}, truth);
      const auto outputs =
          runner.op(ops::kCostLoss, std::make_shared<const ops::CostParams>(kind, 0.5F),
                    {src, wanted}, "delta");
      runner.graph().set_role(outputs[1], graph::Role::kOutput);
      runner.keep(outputs[0]);
      runner.differentiate({});
      runner.run();
      Floats delta(x.size());
      Floats error(x.size());
      Floats dx = initial_gradient(options, shape);
      for (std::int64_t image = 0; image < 2; ++image) {
        const std::int64_t at = image * count;
        const double cost = ops::ref::cost_forward(kind, count, x.data() + at, truth.data() + at,
                                                   error.data() + at, delta.data() + at);
        EXPECT_NEAR(costs_of(runner, outputs[1], 2)[static_cast<std::size_t>(image)], cost,
                    1e-6 * (1 + cost));
      }
      ops::ref::cost_backward(shape.elements(), 0.5F, delta.data(), dx.data());
      expect_close(runner.value(outputs[0]), delta, 1e-6F, "delta");
      expect_close(runner.gradient(src), dx, 1e-6F, "dx");
    }
  });
}

}  // namespace
}  // namespace lantern::test
