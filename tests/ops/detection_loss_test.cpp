// [detection]: deltas against central differences of the loss that they are the gradient of, the
// choice of the responsible box, and the op against the functions.

#include "ops/detection/detection.hpp"

#include "ops/finite_difference.hpp"
#include "ops/op_runner.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

ops::DetectionParams params() {
  ops::DetectionParams p;
  p.classes = 3;
  p.boxes = 2;
  p.side = 3;
  p.max_truths = 3;
  p.softmax = true;
  p.sqrt = true;
  p.coord_scale = 5;
  p.object_scale = 2;
  p.noobject_scale = 0.5F;
  p.class_scale = 1.5F;
  return p;
}

// Two boxes of cell 5 (column 2, row 1), of which the first is the truth of the cell.
const Floats kTruth{0.8F, 0.5F, 0.3F, 0.2F, 2, 0, 0.75F, 0.55F, 0.1F, 0.1F, 0, 0, 0, 0, 0, 0, 0, 0};

double loss_of(const ops::DetectionParams& p, const Values& raw, std::int64_t cell,
               std::int64_t box) {
  const auto at = [&](std::int64_t i) { return raw[static_cast<std::size_t>(i)]; };
  const auto square = [](double v) { return v * v; };
  double loss = 0;
  for (std::int64_t c = 0; c < p.cells(); ++c) {
    for (std::int64_t b = 0; b < p.boxes; ++b) {
      const double obj = at(p.objectness(c, b));
      const bool has_truth = c == cell && b == box;
      loss +=
          has_truth ? 0.5 * p.object_scale * square(1 - obj) : 0.5 * p.noobject_scale * square(obj);
    }
  }
  const std::int64_t v = p.coordinates(cell, box);
  const auto row = [&](std::size_t i) { return static_cast<double>(kTruth[i]); };
  loss += 0.5 * p.coord_scale * square(row(0) * 3 - 2 - at(v));
  loss += 0.5 * p.coord_scale * square(row(1) * 3 - 1 - at(v + 1));
  loss += 0.5 * p.coord_scale * square(std::sqrt(row(2)) - at(v + 2));
  loss += 0.5 * p.coord_scale * square(std::sqrt(row(3)) - at(v + 3));
  double sum = 0;
  for (std::int64_t k = 0; k < p.classes; ++k) sum += std::exp(at(cell * p.classes + k));
  return loss + p.class_scale * (std::log(sum) - at(cell * p.classes + 2));
}

TEST(DetectionDelta, IsTheNegativeGradientOfItsLoss) {
  const ops::DetectionParams p = params();
  Rng rng(51, "detection");
  Values raw = random_values(rng, p.image_size());
  const std::int64_t second = p.coordinates(5, 1);
  for (std::int64_t b : {0, 1}) {  // the second box overlaps the truth, the first one does not
    raw[static_cast<std::size_t>(p.coordinates(5, b))] = b == 0 ? 5 : 0.4;
    raw[static_cast<std::size_t>(p.coordinates(5, b) + 1)] = 0.5;
    raw[static_cast<std::size_t>(p.coordinates(5, b) + 2)] = 0.5;
    raw[static_cast<std::size_t>(p.coordinates(5, b) + 3)] = 0.4;
  }
  EXPECT_EQ(second + 4, p.coordinates(6, 0));
  const Floats input(raw.begin(), raw.end());
  Floats output(input.size());
  Floats delta(input.size());
  ops::detection_activate(p, input.data(), output.data());
  const double cost = ops::detection_delta(p, output.data(), kTruth.data(), nullptr, delta.data());
  double squares = 0;
  for (const float d : delta) squares += static_cast<double>(d) * d;
  EXPECT_NEAR(cost, squares, 1e-9 * squares);
  auto loss = [&] { return loss_of(p, raw, 5, 1); };
  for (std::size_t i = 0; i < raw.size(); ++i) {
    EXPECT_NEAR(delta[i], -central_difference(raw, i, loss), 1e-4) << "value " << i;
  }
}

// The box of cell 5 that has been given the truth.
std::int64_t responsible(const ops::DetectionParams& p, const Floats& output,
                         const ops::DetectionDraw* draw = nullptr, const Floats& truth = kTruth) {
  Floats delta(output.size());
  ops::detection_delta(p, output.data(), truth.data(), draw, delta.data());
  for (std::int64_t b = 0; b < p.boxes; ++b) {
    if (delta[static_cast<std::size_t>(p.coordinates(5, b))] != 0) return b;
  }
  return -1;
}

Floats with_boxes(const ops::DetectionParams& p, const Floats& first, const Floats& second) {
  Floats output(static_cast<std::size_t>(p.image_size()), 0.0F);
  std::ranges::copy(first, output.begin() + p.coordinates(5, 0));
  std::ranges::copy(second, output.begin() + p.coordinates(5, 1));
  return output;
}

TEST(DetectionDelta, GivesATruthToTheBoxThatOverlapsMostOrIsNearest) {
  ops::DetectionParams p = params();
  p.sqrt = false;
  const Floats near{0.45F, 0.5F, 0.3F, 0.2F};
  const Floats far{0.9F, 0.5F, 0.3F, 0.2F};
  EXPECT_EQ(responsible(p, with_boxes(p, far, near)), 1);
  EXPECT_EQ(responsible(p, with_boxes(p, near, far)), 0);
  const Floats away{2, 0.5F, 0.1F, 0.1F};  // no overlap
  const Floats further{3, 0.5F, 0.1F, 0.1F};
  EXPECT_EQ(responsible(p, with_boxes(p, further, away)), 1);
  EXPECT_EQ(responsible(p, with_boxes(p, away, further)), 0);
}

TEST(DetectionDelta, ForcedChoosesBySizeAndRandomDraws) {
  ops::DetectionParams p = params();
  p.forced = true;
  const Floats near{0.45F, 0.5F, 0.3F, 0.2F};
  const Floats output = with_boxes(p, near, {3, 0.5F, 0.1F, 0.1F});
  EXPECT_EQ(responsible(p, output), 1);  // 0.06 of the image
  Floats large = kTruth;
  large[2] = large[3] = 0.5F;
  EXPECT_EQ(responsible(p, output, nullptr, large), 0);
  int second = 0;
  for (std::uint32_t image = 0; image < 100; ++image) {
    const ops::DetectionDraw draw{.seed = 1, .iteration = 2, .image = image};
    second += static_cast<int>(responsible(p, output, &draw));
  }
  EXPECT_GT(second, 30);
  EXPECT_LT(second, 70);
}

TEST(DetectionDelta, RescoreAimsAtTheOverlap) {
  ops::DetectionParams p = params();
  p.sqrt = false;
  p.rescore = true;
  // The right size, half of its width away.
  const Floats output = with_boxes(p, {0.4F + 0.45F, 0.5F, 0.3F, 0.2F}, {3, 3, 0.1F, 0.1F});
  Floats delta(output.size());
  ops::detection_delta(p, output.data(), kTruth.data(), nullptr, delta.data());
  EXPECT_NEAR(delta[static_cast<std::size_t>(p.objectness(5, 0))], 2.0 / 3, 1e-5);
}

TEST(DetectionDelta, PassesOverRowsThatAreNoBoxes) {
  const ops::DetectionParams p = params();
  const Floats output(static_cast<std::size_t>(p.image_size()), 0.25F);
  Floats with(output.size());
  Floats without(output.size());
  const Floats none(18, 0.0F);
  Floats bad{0.8F, 0.5F, 0.3F, 0, 2, 0, 0.8F, 0.5F, 0.3F, 0.2F, 3, 0, NAN, 0.5F, 0.3F, 0.2F, 1, 0};
  ops::detection_delta(p, output.data(), bad.data(), nullptr, with.data());
  ops::detection_delta(p, output.data(), none.data(), nullptr, without.data());
  EXPECT_EQ(with, without);
}

TEST(DetectionLoss, RunsInAGraph) {
  for_each_way([](const RunnerOptions& options) {
    ops::DetectionParams p = params();
    p.random = true;
    const Shape shape{3, p.image_size() / 9, 3, 3};
    Rng rng(52, "detection");
    const Floats x = random_floats(rng, shape.elements(), 0, 1);
    Floats truth = random_floats(rng, 3 * 18, 0.1F, 0.9F);
    for (std::size_t i = 4; i < truth.size(); i += 6) truth[i] = static_cast<float>(i % 3);
    truth[36] = 0;  // the last image has no box
    OpRunner runner(options);
    const TensorId src = runner.source("x", shape, x);
    const TensorId wanted = runner.input("truth", Shape{3, 18}, truth);
    const auto outputs = runner.op(
        ops::kDetectionLoss, std::make_shared<const ops::DetectionParams>(p), {src, wanted}, "y");
    runner.graph().set_role(outputs[2], graph::Role::kOutput);
    runner.keep(outputs[0]);
    runner.differentiate({});
    // 63999 images seen with this mini-batch: boxes are drawn; one image later they are chosen.
    for (const auto& [batch, seed] : {std::pair{63996.0F, 9U}, std::pair{63996.0F, 10U},
                                      std::pair{63996.0F, 11U}, std::pair{63997.0F, 9U}}) {
      runner.run({.seed = seed, .iteration = 2, .batch = batch});
      Floats y(x.size());
      Floats dx = initial_gradient(options, shape);
      for (std::int64_t image = 0; image < 3; ++image) {
        const std::int64_t at = image * p.image_size();
        const ops::DetectionDraw draw{
            .seed = seed, .iteration = 2, .image = static_cast<std::uint32_t>(image)};
        Floats delta(static_cast<std::size_t>(p.image_size()));
        ops::detection_activate(p, x.data() + at, y.data() + at);
        const double cost = ops::detection_delta(p, y.data() + at, truth.data() + image * 18,
                                                 batch < 63997 ? &draw : nullptr, delta.data());
        double got = 0;
        std::memcpy(&got, runner.executor().bytes(outputs[2]).data() + image * 8, sizeof got);
        EXPECT_EQ(got, cost);
        for (std::size_t i = 0; i < delta.size(); ++i)
          dx[static_cast<std::size_t>(at) + i] += delta[i];
      }
      EXPECT_EQ(runner.value(outputs[0]), y);
      EXPECT_EQ(runner.gradient(src), dx);
    }
  });
}

}  // namespace
}  // namespace lantern::test
