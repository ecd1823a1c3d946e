// [region] and [Gaussian_yolo]: deltas against central differences of the losses that they are
// gradients of, and the ops against the functions. The golden networks hold both to the reference's
// numbers.

#include "ops/finite_difference.hpp"
#include "ops/gaussian_yolo/gaussian_yolo.hpp"
#include "ops/op_runner.hpp"
#include "ops/region/region.hpp"
#include "ops/yolo_loss/yolo_op.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

ops::RegionParams region_params() {
  ops::RegionParams p;
  p.classes = 3;
  p.anchors = {1.0F, 1.5F, 3.0F, 2.0F};
  p.max_truths = 2;
  p.softmax = true;
  p.bias_match = true;
  p.thresh = 1;  // every cell without a truth is a negative
  p.coord_scale = 2;
  p.object_scale = 5;
  p.noobject_scale = 0.5F;
  p.class_scale = 3;
  p.grid_w = 4;
  p.grid_h = 3;
  return p;
}

// The loss whose negative gradient the delta is, with one truth at a given cell and anchor.
double region_loss(const ops::RegionParams& p, const Values& raw, const float* truth,
                   std::int64_t cell, std::int64_t anchor) {
  const std::int64_t cells = p.grid_w * p.grid_h;
  double loss = 0;
  for (std::int64_t a = 0; a < p.boxes(); ++a) {
    for (std::int64_t i = 0; i < cells; ++i) {
      const auto value = [&](std::int64_t e) {
        return raw[static_cast<std::size_t>((a * p.entries() + e) * cells + i)];
      };
      const double obj = logistic(value(4));
      if (i != cell || a != anchor) {
        loss += 0.5 * p.noobject_scale * obj * obj;
        continue;
      }
      loss += 0.5 * p.object_scale * (1 - obj) * (1 - obj);
      const double x = truth[0] * static_cast<double>(p.grid_w) - static_cast<double>(i % p.grid_w);
      const double y = truth[1] * static_cast<double>(p.grid_h) - static_cast<double>(i / p.grid_w);
      const double w = std::log(truth[2] * static_cast<double>(p.grid_w) /
                                p.anchors[static_cast<std::size_t>(2 * a)]);
      const double h = std::log(truth[3] * static_cast<double>(p.grid_h) /
                                p.anchors[static_cast<std::size_t>(2 * a + 1)]);
      const double errors[] = {x - logistic(value(0)), y - logistic(value(1)), w - value(2),
                               h - value(3)};
      for (const double e : errors) loss += 0.5 * p.coord_scale * e * e;
      double sum = 0;
      for (int k = 0; k < p.classes; ++k) sum += std::exp(value(5 + k));
      loss += p.class_scale * (std::log(sum) - value(5 + static_cast<std::int64_t>(truth[4])));
    }
  }
  return loss;
}

TEST(RegionDelta, IsTheNegativeGradientOfItsLoss) {
  const ops::RegionParams p = region_params();
  Rng rng(31, "region");
  Values raw = random_values(rng, p.image_size(), -2, 2);
  const Floats truth{0.6F, 0.4F, 0.7F, 0.6F, 2, 0,
                     0,    0,    0,    0,    0, 0};  // column 2, row 1; the second anchor's shape
  const Floats input(raw.begin(), raw.end());
  Floats output(input.size());
  Floats delta(input.size());
  ops::region_activate(p, input.data(), output.data());
  const double cost = ops::region_delta(p, output.data(), truth.data(), false, delta.data());
  double squares = 0;
  for (const float d : delta) squares += static_cast<double>(d) * d;
  EXPECT_NEAR(cost, squares, 1e-9 * squares);
  auto loss = [&] { return region_loss(p, raw, truth.data(), 1 * 4 + 2, 1); };
  for (std::size_t i = 0; i < raw.size(); ++i) {
    EXPECT_NEAR(delta[i], -central_difference(raw, i, loss), 1e-4) << "value " << i;
  }
}

TEST(RegionDelta, DrawsEveryCellToItsAnchorAtFirst) {
  const ops::RegionParams p = region_params();
  Rng rng(32, "region");
  const Floats input = random_floats(rng, p.image_size());
  const Floats truth(12, 0.0F);
  Floats output(input.size());
  Floats with(input.size());
  Floats without(input.size());
  ops::region_activate(p, input.data(), output.data());
  ops::region_delta(p, output.data(), truth.data(), true, with.data());
  ops::region_delta(p, output.data(), truth.data(), false, without.data());
  const std::int64_t cells = p.grid_w * p.grid_h;
  for (std::int64_t i = 0; i < p.image_size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t entry = i / cells % p.entries();
    const double x = input[at];
    double expected = without[at];
    if (entry < 2) expected = 0.01 * (0.5 - logistic(x)) * logistic(x) * (1 - logistic(x));
    if (entry == 2 || entry == 3) expected = -0.01 * x;
    EXPECT_NEAR(with[at], expected, 1e-6) << "value " << i;
  }
}

TEST(RegionLoss, RunsInAGraph) {
  for_each_way([](const RunnerOptions& options) {
    ops::RegionParams p = region_params();
    p.thresh = 0.3F;
    const Shape shape{3, p.boxes() * p.entries(), p.grid_h, p.grid_w};
    Rng rng(33, "region");
    const Floats x = random_floats(rng, shape.elements(), -2, 2);
    Floats truth = random_floats(rng, 3 * 12, 0.1F, 0.9F);
    for (std::size_t i = 4; i < truth.size(); i += 6) truth[i] = static_cast<float>(i % 3);
    truth[24] = 0;  // the last image has no box
    OpRunner runner(options);
    const TensorId src = runner.source("x", shape, x);
    const TensorId wanted = runner.input("truth", Shape{3, 12}, truth);
    const auto outputs = runner.op(ops::kRegionLoss, std::make_shared<const ops::RegionParams>(p),
                                   {src, wanted}, "y");
    runner.graph().set_role(outputs[2], graph::Role::kOutput);
    runner.keep(outputs[0]);
    runner.differentiate({});
    // 12799 images seen with this mini-batch: the prior is on; one image later it is off.
    for (const float batch : {12796.0F, 12797.0F}) {
      runner.run({.iteration = 2, .batch = batch});
      Floats y(x.size());
      Floats dx = initial_gradient(options, shape);
      for (std::int64_t image = 0; image < 3; ++image) {
        const std::int64_t at = image * p.image_size();
        Floats delta(static_cast<std::size_t>(p.image_size()));
        ops::region_activate(p, x.data() + at, y.data() + at);
        const double cost = ops::region_delta(p, y.data() + at, truth.data() + image * 12,
                                              batch < 12797, delta.data());
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

ops::GaussianParams gaussian_params() {
  ops::GaussianParams p;
  p.yolo.classes = 2;
  p.yolo.anchors = {10, 14, 23, 27, 40, 30};
  p.yolo.mask = {0, 2};
  p.yolo.max_truths = 2;
  p.yolo.scale_x_y = 1.1F;
  p.yolo.iou_normalizer = 1;
  p.yolo.net_w = p.yolo.net_h = 64;
  p.yolo.grid_w = 4;
  p.yolo.grid_h = 3;
  return p;
}

// Half the truth's weight times the log of the reference's "density" plus 1e-9, summed over the
// coordinates.
double log_density(const ops::GaussianParams& p, const Values& activated, const float* truth,
                   std::int64_t cell, std::int64_t anchor) {
  const std::int64_t cells = p.yolo.grid_w * p.yolo.grid_h;
  const auto index = static_cast<std::size_t>(2 * p.yolo.mask[static_cast<std::size_t>(anchor)]);
  const double targets[] = {
      truth[0] * static_cast<double>(p.yolo.grid_w) - static_cast<double>(cell % p.yolo.grid_w),
      truth[1] * static_cast<double>(p.yolo.grid_h) - static_cast<double>(cell / p.yolo.grid_w),
      std::log(truth[2] * 64.0 / p.yolo.anchors[index]),
      std::log(truth[3] * 64.0 / p.yolo.anchors[index + 1])};
  double sum = 0;
  for (std::int64_t c = 0; c < 4; ++c) {
    const auto at = [&](std::int64_t e) {
      return static_cast<std::size_t>((anchor * p.entries() + e) * cells + cell);
    };
    const double d = targets[c] - activated[at(2 * c)];
    const double sigma = activated[at(2 * c + 1)];
    const double density =
        std::exp(-d * d / (2 * sigma * sigma)) / (std::sqrt(2 * M_PI) * (sigma + 0.3));
    sum += 0.5 * (2 - static_cast<double>(truth[2]) * truth[3]) * std::log(density + 1e-9);
  }
  return sum;
}

TEST(GaussianDelta, IsTheGradientOfTheLogDensity) {
  const ops::GaussianParams p = gaussian_params();
  Rng rng(34, "gaussian");
  const Floats raw = random_floats(rng, p.image_size());
  Floats out(raw.size());
  Floats delta(raw.size());
  ops::gaussian_activate(p, raw.data(), out.data());
  const Floats truth{0.6F, 0.4F, 0.6F, 0.5F, 1, 0,
                     0,    0,    0,    0,    0, 0};  // column 2, row 1; the third anchor's shape
  ops::gaussian_delta(p, out.data(), truth.data(), delta.data());
  Values activated(out.begin(), out.end());
  auto value = [&] { return log_density(p, activated, truth.data(), 6, 1); };
  for (std::size_t i = 0; i < activated.size(); ++i) {
    const std::int64_t entry = static_cast<std::int64_t>(i) / 12 % p.entries();
    if (entry >= 8) continue;
    EXPECT_NEAR(delta[i], central_difference(activated, i, value), 2e-4) << "value " << i;
  }
  // Objectness and classes of the matched place; all other places are negatives.
  for (std::int64_t a = 0; a < 2; ++a) {
    for (std::int64_t cell = 0; cell < 12; ++cell) {
      const auto at = [&](std::int64_t e) {
        return static_cast<std::size_t>((a * p.entries() + e) * 12 + cell);
      };
      const bool matched = a == 1 && cell == 6;
      if (matched) {
        EXPECT_FLOAT_EQ(delta[at(8)], 1 - out[at(8)]);
        EXPECT_FLOAT_EQ(delta[at(9)], 0 - out[at(9)]);
        EXPECT_FLOAT_EQ(delta[at(10)], 1 - out[at(10)]);
      } else {
        EXPECT_TRUE(delta[at(8)] == -out[at(8)] || delta[at(8)] == 0);
        EXPECT_EQ(delta[at(10)], 0);
      }
    }
  }
}

TEST(GaussianLoss, RunsInAGraph) {
  for_each_way([](const RunnerOptions& options) {
    ops::GaussianParams p = gaussian_params();
    p.yolo.iou_loss = ops::IouKind::kCiou;
    p.yolo.iou_thresh = 0.2F;
    p.yolo.delta_normalizer = 0.5F;
    p.point = ops::GaussianParams::Point::kRightBottom;
    const Shape shape{3, 2 * p.entries(), p.yolo.grid_h, p.yolo.grid_w};
    Rng rng(35, "gaussian");
    const Floats x = random_floats(rng, shape.elements());
    Floats truth = random_floats(rng, 3 * 12, 0.1F, 0.9F);
    for (std::size_t i = 4; i < truth.size(); i += 6) truth[i] = static_cast<float>(i % 2);
    OpRunner runner(options);
    const TensorId src = runner.source("x", shape, x);
    const TensorId wanted = runner.input("truth", Shape{3, 12}, truth);
    const auto outputs = runner.op(
        ops::kGaussianLoss, std::make_shared<const ops::GaussianParams>(p), {src, wanted}, "y");
    runner.graph().set_role(outputs[2], graph::Role::kOutput);
    runner.keep(outputs[0]);
    runner.differentiate({});
    runner.run();
    Floats y(x.size());
    Floats dx = initial_gradient(options, shape);
    for (std::int64_t image = 0; image < 3; ++image) {
      const std::int64_t at = image * p.image_size();
      Floats delta(static_cast<std::size_t>(p.image_size()));
      ops::gaussian_activate(p, x.data() + at, y.data() + at);
      const double cost =
          ops::gaussian_delta(p, y.data() + at, truth.data() + image * 12, delta.data());
      double got = 0;
      std::memcpy(&got, runner.executor().bytes(outputs[2]).data() + image * 8, sizeof got);
      EXPECT_EQ(got, cost);
      for (std::size_t i = 0; i < delta.size(); ++i)
        dx[static_cast<std::size_t>(at) + i] += 0.5F * delta[i];
    }
    EXPECT_EQ(runner.value(outputs[0]), y);
    EXPECT_EQ(runner.gradient(src), dx);
  });
}

TEST(YoloLoss, HandsItsDeltaOnTimesDeltaNormalizer) {
  for_each_way([](const RunnerOptions& options) {
    for (const float factor : {1.0F, 0.25F}) {
      ops::YoloParams p = gaussian_params().yolo;
      p.delta_normalizer = factor;
      const Shape shape{2, 2 * p.entries(), p.grid_h, p.grid_w};
      Rng rng(36, "yolo");
      OpRunner runner(options);
      const TensorId src = runner.source("x", shape, random_floats(rng, shape.elements()));
      Floats truth = random_floats(rng, 2 * 12, 0.1F, 0.9F);
      for (std::size_t i = 4; i < truth.size(); i += 6) truth[i] = static_cast<float>(i % 2);
      const TensorId wanted = runner.input("truth", Shape{2, 12}, truth);
      const auto outputs = runner.op(ops::kYoloLoss, std::make_shared<const ops::YoloOpParams>(p),
                                     {src, wanted}, "y");
      runner.graph().set_role(outputs[2], graph::Role::kOutput);
      runner.keep(outputs[1]);
      runner.differentiate({});
      runner.run();
      Floats dx = initial_gradient(options, shape);
      const Floats delta = runner.value(outputs[1]);
      for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += factor * delta[i];
      expect_close(runner.gradient(src), dx, 1e-6F, "dx");
    }
  });
}

}  // namespace
}  // namespace lantern::test
