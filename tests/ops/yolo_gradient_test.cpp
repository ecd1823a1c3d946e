// The [yolo] deltas and box gradients against central differences in double.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "core/rng.hpp"
#include "ops/yolo_loss/yolo_loss.hpp"
#include "ops/yolo_small.hpp"

namespace lantern::ops {
namespace {

double central_difference(const std::function<double(double)>& f, double at, double step = 1e-6) {
  return (f(at + step) - f(at - step)) / (2 * step);
}

Box<double> random_box(Rng& rng) {
  return {rng.uniform(0.3F, 0.7F), rng.uniform(0.3F, 0.7F), rng.uniform(0.05F, 0.6F),
          rng.uniform(0.05F, 0.6F)};
}

// Two edges so close that the step of the differences crosses them.
bool near_a_kink(const Box<double>& a, const Box<double>& b) {
  for (const double sa : {-0.5, 0.5}) {
    for (const double sb : {-0.5, 0.5}) {
      if (std::abs(a.x + sa * a.w - b.x - sb * b.w) < 1e-5) return true;
      if (std::abs(a.y + sa * a.h - b.y - sb * b.h) < 1e-5) return true;
    }
  }
  return false;
}

TEST(BoxIou, ExactGradientIsTheDerivativeOfTheObjective) {
  Rng rng(7, "boxes");
  for (int n = 0; n < 500; ++n) {
    const Box<double> p = random_box(rng), t = random_box(rng);
    if (near_a_kink(p, t)) continue;
    for (const IouKind kind : kIouLosses) {
      SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) + " pair " + std::to_string(n));
      const BoxVector<double> g = exact_iou_gradient(kind, p, t);
      const auto numeric = [&](double Box<double>::*side) {
        return central_difference(
            [&](double v) {
              Box<double> moved = p;
              moved.*side = v;
              return iou_objective(kind, moved, t);
            },
            p.*side);
      };
      EXPECT_NEAR(g.x, numeric(&Box<double>::x), 1e-6);
      EXPECT_NEAR(g.y, numeric(&Box<double>::y), 1e-6);
      EXPECT_NEAR(g.w, numeric(&Box<double>::w), 1e-6);
      EXPECT_NEAR(g.h, numeric(&Box<double>::h), 1e-6);
    }
  }
}

TEST(YoloDelta, ExactIouGradientGoesThroughTheWholeChain) {
  for (const IouKind kind : kIouLosses) {
    for (const bool new_coords : {false, true}) {
      SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) +
                   (new_coords ? " new_coords" : ""));
      Small net;
      net.p.iou_loss = kind;
      net.p.new_coords = new_coords;
      net.p.exact_iou_gradient = true;
      net.p.scale_x_y = 1.3F;
      net.p.iou_normalizer = 0.5F;
      net.p.counters_per_class = {40, 10};             // multiplier 4 for class 1
      net.set_truth(0, {0.4F, 0.12F, 0.3F, 0.3F}, 1);  // sticks out of the prediction on one side
      if (new_coords) {
        for (double& v : net.raw) v = 1 / (1 + std::exp(-v));
      }
      std::vector<double> delta;
      const YoloImageStats stats = delta_of(net.p, net.activated(), net.truth, delta);
      ASSERT_EQ(stats.count, 1);
      for (int entry = 0; entry < 4; ++entry) {
        const std::size_t at = net.at(entry);
        const double numeric = central_difference(
            [&](double v) {
              Small moved = net;
              moved.raw[at] = v;
              return 4 * 0.5 * iou_objective(kind, moved.box(), net.target());
            },
            net.raw[at]);
        EXPECT_NE(delta[at], 0);
        EXPECT_NEAR(delta[at], numeric, 1e-6) << "entry " << entry;
      }
    }
  }
}

double cross_entropy(double logit, double target) {
  return std::log1p(std::exp(logit)) - target * logit;
}

TEST(YoloDelta, ObjectnessAndClassesAreTheGradientOfBinaryCrossEntropy) {
  Small net;
  net.p.label_smooth_eps = 0.1F;
  std::vector<double> delta;
  delta_of(net.p, net.activated(), net.truth, delta);
  for (std::int64_t cell = 0; cell < net.cells; ++cell) {
    for (int entry = 4; entry < 7; ++entry) {
      const auto at = static_cast<std::size_t>(entry * net.cells + cell);
      if (entry > 4 && cell != net.cell) {
        EXPECT_EQ(delta[at], 0);
        continue;
      }
      double target = cell == net.cell ? 1 : 0;
      if (entry == 5) target = 0.05;
      if (entry == 6) target = 0.95;
      const double numeric =
          central_difference([&](double t) { return cross_entropy(t, target); }, net.raw[at]);
      EXPECT_NEAR(delta[at], -numeric, 1e-8) << "entry " << entry << " cell " << cell;
    }
  }
}

TEST(YoloDelta, NewCoordsObjectnessAndClassesAreTheGradientOfTheSquaredError) {
  Small net;
  net.p.new_coords = true;
  const std::vector<double> logits = net.raw;  // of the logistic convolution below
  const auto logistic = [](double t) { return 1 / (1 + std::exp(-t)); };
  for (double& v : net.raw) v = logistic(v);
  std::vector<double> delta;
  delta_of(net.p, net.activated(), net.truth, delta);
  const double targets[] = {1, 0, 1};
  for (int entry = 4; entry < 7; ++entry) {
    const std::size_t at = net.at(entry);
    const double y = net.raw[at];
    const double numeric = central_difference(
        [&](double t) { return 0.5 * std::pow(targets[entry - 4] - logistic(t), 2); }, logits[at]);
    EXPECT_NEAR(delta[at] * y * (1 - y), -numeric, 1e-8);
  }
}

TEST(YoloDelta, MseSizesAreSquaredErrorAndCentresCrossEntropy) {
  Small net;
  net.p.iou_normalizer = 0.6F;
  std::vector<double> delta;
  delta_of(net.p, net.activated(), net.truth, delta);
  const Box<double> t = net.target();
  const double scale = (2 - t.w * t.h) * static_cast<double>(net.p.iou_normalizer);
  const double sizes[] = {std::log(t.w * 96 / 30), std::log(t.h * 64 / 20)};
  const double centres[] = {t.x * 3 - 1, t.y * 2};
  for (int i = 0; i < 2; ++i) {
    const double numeric_size = central_difference(
        [&](double v) { return 0.5 * scale * std::pow(sizes[i] - v, 2); }, net.raw[net.at(2 + i)]);
    EXPECT_NEAR(delta[net.at(2 + i)], -numeric_size, 1e-8);
    const double numeric_centre = central_difference(
        [&](double v) { return scale * cross_entropy(v, centres[i]); }, net.raw[net.at(i)]);
    EXPECT_NEAR(delta[net.at(i)], -numeric_centre, 1e-8);
  }
}

}  // namespace
}  // namespace lantern::ops
