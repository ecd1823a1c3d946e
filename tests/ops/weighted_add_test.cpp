// Weighted [shortcut] and the optimiser steps against the reference templates.

#include "ops/add/weighted_add.hpp"

#include "ops/op_runner.hpp"
#include "ops/sgd/sgd.hpp"
#include "ops/sgd/sgd_ref.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

TEST(WeightedAdd, MatchesTheReference) {
  const std::vector<std::vector<Shape>> sums{
      {{2, 3, 4, 4}, {2, 3, 4, 4}},
      {{3, 19, 2, 2}, {3, 19, 2, 2}, {3, 7, 2, 2}, {3, 40, 2, 2}},
      {{2, 5, 6, 4}, {2, 9, 3, 2}, {2, 5, 12, 8}},
  };
  for_each_way([&](const RunnerOptions& options) {
    for (const auto normalization : {ops::AddNormalization::kRelu, ops::AddNormalization::kSoftmax,
                                     ops::AddNormalization::kNone}) {
      for (const bool per_channel : {false, true}) {
        for (const std::vector<Shape>& shapes : sums) {
          ops::ref::AddParams p{.n = shapes[0].n(),
                                .shapes = {},
                                .weights = per_channel ? ops::ref::AddWeights::kPerChannel
                                                       : ops::ref::AddWeights::kPerFeature,
                                .normalization = normalization};
          Rng rng(21, "weighted", per_channel ? 1 : 0, static_cast<std::uint32_t>(shapes.size()));
          OpRunner runner(options);
          std::vector<Floats> values;
          std::vector<TensorId> sources;
          for (const Shape& shape : shapes) {
            p.shapes.push_back({shape.c(), shape.h(), shape.w()});
            values.push_back(random_floats(rng, shape.elements()));
            sources.push_back(
                runner.source("x" + std::to_string(sources.size()), shape, values.back()));
          }
          const std::int64_t count = static_cast<std::int64_t>(shapes.size()) * p.sets();
          const Floats raw = random_floats(rng, count, -0.3F, 1);  // some below the floor of relu
          const Floats dy = random_floats(rng, shapes[0].elements());
          std::vector<TensorId> inputs{runner.parameter("w", Shape{count}, raw)};
          inputs.insert(inputs.end(), sources.begin(), sources.end());
          const TensorId dst =
              runner.op(ops::kWeightedAddForward,
                        std::make_shared<const ops::WeightedAddParams>(normalization, per_channel),
                        inputs, "y")[0];
          runner.keep(dst);
          runner.differentiate({{dst, dy}});
          Floats y(dy.size());
          Floats dw(raw.size(), 0.0F);
          std::vector<Floats> dx;
          std::vector<const float*> in;
          std::vector<float*> out;
          for (std::size_t i = 0; i < shapes.size(); ++i)
            dx.push_back(initial_gradient(options, shapes[i]));
          for (std::size_t i = 0; i < shapes.size(); ++i) {
            in.push_back(values[i].data());
            out.push_back(dx[i].data());
          }
          ops::ref::add_forward<float>(p, in, raw.data(), y.data());
          ops::ref::add_backward<float>(p, in, raw.data(), dy.data(), out, dw.data());
          for (const int subdivision : {0, 1}) {
            runner.run({.subdivision = subdivision});
            expect_close(runner.value(dst), y, 1e-5F, "y");
            for (std::size_t i = 0; i < shapes.size(); ++i) {
              expect_close(runner.gradient(sources[i]), dx[i], 1e-5F, "dx " + std::to_string(i));
            }
            Floats total = dw;
            for (float& v : total) v *= static_cast<float>(subdivision + 1);
            expect_close(runner.gradient(inputs[0]), total, 1e-4F, "dw");
          }
        }
      }
    }
  });
}

// A parameter with a given gradient, and one update step of it.
struct UpdateRun {
  graph::Graph graph;
  TensorId gradient, w, first, second;
  std::unique_ptr<exec::Executor> executor;

  UpdateRun(const graph::OpDef& def, std::shared_ptr<const graph::OpParams> params,
            std::int64_t count, bool moments) {
    const Shape shape{count};
    gradient = graph.add_tensor("d", {shape}, graph::Role::kParameterGradient);
    w = graph.add_tensor("w", {shape}, graph::Role::kParameter);
    first = graph.add_tensor("m", {shape}, graph::Role::kState);
    second = graph.add_tensor("v", {shape}, graph::Role::kState);
    std::vector<TensorId> outputs{w, first};
    if (moments) outputs.push_back(second);
    std::vector<bool> accumulates(outputs.size(), true);
    graph.add_op_to(def, std::move(params), {gradient}, outputs, accumulates,
                    graph::ProgramKind::kUpdate, 0);
    ops::Selection selection = ops::select(graph, {.threads = 2});
    plan::Program program = plan::make_program(selection.selected);
    plan::check(selection.selected, program);
    executor = std::make_unique<exec::Executor>(std::move(selection), std::move(program), 2);
  }
};

TEST(AdamStep, MatchesTheReferenceOverSeveralUpdates) {
  const std::int64_t count = 77;
  Rng rng(22, "adam");
  auto params = std::make_shared<ops::AdamParams>();
  params->beta1 = 0.8F;
  params->beta2 = 0.95F;
  params->epsilon = 1e-3F;
  params->rate_factor = 2;
  params->clip = 0.9F;
  params->first_iteration = 2;
  UpdateRun run(ops::kAdamStep, params, count, true);
  Floats w = random_floats(rng, count);
  Floats m(w.size(), 0.0F);
  Floats v(w.size(), 0.0F);
  run.executor->write(run.w, w);
  for (std::int64_t iteration = 1; iteration <= 4; ++iteration) {
    const Floats d = random_floats(rng, count, -8, 8);
    run.executor->write(run.gradient, d);
    run.executor->run(graph::ProgramKind::kUpdate,
                      {.iteration = iteration, .learning_rate = 0.01F, .decay = 0.05F, .batch = 4});
    if (iteration >= 2) {
      ops::ref::adam_step<float>({.lr = 0.02,
                                  .beta1 = 0.8,
                                  .beta2 = 0.95,
                                  .epsilon = 1e-3,
                                  .decay = 0.05,
                                  .batch = 4,
                                  .step = iteration,
                                  .clip = 0.9},
                                 count, d.data(), w.data(), m.data(), v.data());
    }
    expect_close(run.executor->read(run.w), w, 1e-5F, "w");
    expect_close(run.executor->read(run.first), m, 1e-5F, "m");
    expect_close(run.executor->read(run.second), v, 1e-5F, "v");
  }
}

TEST(SgdStep, ClampsTheBufferOfShortcutWeights) {
  const std::int64_t count = 33;
  Rng rng(23, "sgd");
  auto params = std::make_shared<ops::SgdParams>();
  params->limit = 1;
  UpdateRun run(ops::kSgdStep, params, count, false);
  Floats w = random_floats(rng, count);
  Floats buffer(w.size(), 0.0F);
  run.executor->write(run.w, w);
  for (std::int64_t iteration = 1; iteration <= 3; ++iteration) {
    const Floats d = random_floats(rng, count, -3, 3);
    run.executor->write(run.gradient, d);
    run.executor->run(graph::ProgramKind::kUpdate, {.iteration = iteration,
                                                    .learning_rate = 0.1F,
                                                    .momentum = 0.9F,
                                                    .decay = 0.05F,
                                                    .batch = 2});
    ops::ref::sgd_step<float>({.lr = 0.1, .momentum = 0.9, .decay = 0, .batch = 2, .limit = 1},
                              count, d.data(), w.data(), buffer.data());
    expect_close(run.executor->read(run.w), w, 1e-5F, "w");
    expect_close(run.executor->read(run.first), buffer, 1e-5F, "buffer");
  }
}

}  // namespace
}  // namespace lantern::test
