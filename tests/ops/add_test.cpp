// Addition and copies against the reference loops.

#include "ops/add/add.hpp"

#include "ops/add/add_ref.hpp"
#include "ops/op_runner.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

// The shapes of the distinct sources; `order` says which of them the sum takes, the first one gives
// the result's shape.
void check_against_reference(const std::vector<Shape>& shapes,
                             const std::vector<std::size_t>& order) {
  for_each_way([&](const RunnerOptions& options) {
    Rng rng(71, "add", 0, static_cast<std::uint32_t>(shapes[0].elements()));
    OpRunner runner(options);
    std::vector<Floats> values;
    std::vector<TensorId> sources;
    for (const Shape& shape : shapes) {
      values.push_back(random_floats(rng, shape.elements()));
      sources.push_back(runner.source("x" + std::to_string(sources.size()), shape, values.back()));
    }
    ops::ref::AddParams p{.n = shapes[0].n(), .shapes = {}};
    std::vector<Floats> dx;
    for (const Shape& shape : shapes) dx.push_back(initial_gradient(options, shape));
    std::vector<TensorId> inputs;
    std::vector<const float*> in;
    std::vector<float*> out;
    for (const std::size_t source : order) {
      p.shapes.push_back({shapes[source].c(), shapes[source].h(), shapes[source].w()});
      inputs.push_back(sources[source]);
      in.push_back(values[source].data());
      out.push_back(dx[source].data());
    }
    const Floats dy = random_floats(rng, shapes[order[0]].elements());
    const TensorId dst =
        runner.op(ops::kAddForward, std::make_shared<const graph::OpParams>(), inputs, "y")[0];
    runner.keep(dst);
    // Where the base lives on, the sum cannot take its place in memory.
    if (options.block == 8) runner.keep(inputs[0]);
    runner.differentiate({{dst, dy}});
    runner.run();
    Floats y(dy.size());
    ops::ref::add_forward<float>(p, in, nullptr, y.data());
    ops::ref::add_backward<float>(p, in, nullptr, dy.data(), out, nullptr);
    expect_close(runner.value(dst), y, 1e-6F, "y");
    for (std::size_t i = 0; i < sources.size(); ++i) {
      expect_close(runner.gradient(sources[i]), dx[i], 1e-6F, "dx " + std::to_string(i));
    }
  });
}

TEST(Add, MatchesTheReferenceOnEqualShapes) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 5, 3, 4}, Shape{3, 33, 9, 11}}) {
    check_against_reference({shape, shape}, {0, 1});
    check_against_reference({shape, shape, shape}, {0, 1, 2});
  }
}

TEST(Add, ASourceMayOccurTwice) {
  const Shape shape{2, 19, 3, 4};
  check_against_reference({shape}, {0, 0});
  check_against_reference({shape, shape}, {0, 1, 0});
  check_against_reference({shape, shape}, {1, 0, 0});
}

TEST(Add, MatchesTheReferenceOnOtherChannelsAndMapSizes) {
  const Shape base{2, 19, 6, 8};
  check_against_reference({base, {2, 7, 6, 8}}, {0, 1});
  check_against_reference({base, {2, 40, 6, 8}}, {0, 1});
  check_against_reference({base, {2, 19, 12, 16}}, {0, 1});
  check_against_reference({base, {2, 5, 3, 4}}, {0, 1});
  check_against_reference({base, {2, 35, 3, 4}, base, {2, 3, 18, 24}, {2, 23, 7, 9}},
                          {0, 1, 2, 3, 4});
}

TEST(Copy, GivesTheBitsAndAddsUpGradients) {
  for_each_way([](const RunnerOptions& options) {
    for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 5, 3, 4}, Shape{3, 33, 19, 11}}) {
      Rng rng(72, "copy");
      const Floats x = random_floats(rng, shape.elements());
      const Floats dy = random_floats(rng, shape.elements());
      const Floats dz = random_floats(rng, shape.elements());
      OpRunner runner(options);
      const TensorId src = runner.source("x", shape, x);
      const auto copy = [&](const std::string& name) {
        return runner.op(ops::kCopy, std::make_shared<const graph::OpParams>(), {src}, name)[0];
      };
      const TensorId y = copy("y");
      const TensorId z = copy("z");
      runner.keep(y);
      runner.keep(z);
      runner.differentiate({{y, dy}, {z, dz}});
      runner.run();
      Floats dx = initial_gradient(options, shape);
      for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += dz[i] + dy[i];
      ASSERT_EQ(runner.value(y), x);
      ASSERT_EQ(runner.value(z), x);
      expect_close(runner.gradient(src), dx, 1e-6F, "dx");
    }
  });
}

}  // namespace
}  // namespace lantern::test
