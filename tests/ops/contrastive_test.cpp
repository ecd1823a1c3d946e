// [contrastive] against the formulas of the reference text with every pair in a table.

#include "ops/contrastive/contrastive.hpp"

#include "ops/finite_difference.hpp"
#include "ops/op_runner.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

struct Item {
  std::size_t image, first;  // the first value of its embedding within the image
  int label, class_id;
};

// The deltas of all values [images][size], items having `length` values `step` apart.
Values deltas_of(const ops::ContrastiveParams& p, const Values& x, std::size_t size,
                 const std::vector<Item>& items, std::size_t length, std::size_t step) {
  const std::size_t n = items.size();
  const double t = static_cast<double>(p.temperature);
  const auto value = [&](std::size_t i, std::size_t k) {
    return x[items[i].image * size + items[i].first + k * step];
  };
  const auto product = [&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t k = 0; k < length; ++k) sum += value(i, k) * value(j, k);
    return sum;
  };
  const auto is_pair = [&](std::size_t i, std::size_t j) {
    return i != j && items[i].class_id == items[j].class_id &&
           static_cast<std::int64_t>(items[i].image) / p.step_images ==
               static_cast<std::int64_t>(items[j].image) / p.step_images;
  };
  std::vector<Values> s(n, Values(n)), probability(n, Values(n));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      s[i][j] = product(i, j) / std::sqrt(product(i, i) * product(j, j));
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) {
        if (k != i && is_pair(k, j)) sum += std::exp(s[k][j] / t);
      }
      probability[i][j] = sum == 0 ? 0.9999 : std::exp(s[i][j] / t) / sum;
      if (p.yolo && probability[i][j] > 1) probability[i][j] = 0.9999;
    }
  }
  Values delta(x.size(), 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    int equal = 0;
    for (const Item& other : items) equal += other.label == items[i].label ? 1 : 0;
    if (equal < 2) continue;
    const double c = 1 / ((equal - 1) * t * std::sqrt(product(i, i)));
    Values d(length, 0.0);
    const auto add = [&](std::size_t j, double factor) {
      for (std::size_t k = 0; k < length; ++k)
        d[k] += factor * (value(j, k) - s[i][j] * value(i, k));
    };
    int used = 0;
    for (std::size_t j = 0; j < n; ++j) {
      if (j == i || items[j].label != items[i].label) continue;
      if (is_pair(i, j)) add(j, c * (1 - probability[i][j]));
      for (std::size_t k = 0; k < n; ++k) {
        if (k == i || k == j || !is_pair(i, k)) continue;
        if (p.yolo && (items[k].label == items[i].label || used++ >= p.negatives)) continue;
        add(k, -c * probability[i][k]);
      }
    }
    for (std::size_t k = 0; k < length; ++k) {
      const double limit = static_cast<double>(p.max_delta);
      delta[items[i].image * size + items[i].first + k * step] =
          std::clamp(d[k] * static_cast<double>(p.cls_normalizer), -limit, limit);
    }
  }
  return delta;
}

void expect_loss(const ops::ContrastiveParams& p, const Shape& shape, const Floats& truth,
                 const std::vector<Item>& items, std::size_t length, std::size_t step,
                 const RunnerOptions& options) {
  Rng rng(81, "contrastive", static_cast<std::uint64_t>(items.size()));
  const Floats x = random_floats(rng, shape.elements());
  OpRunner runner(options);
  const TensorId src = runner.source("x", shape, x);
  const TensorId wanted = runner.input(
      "truth", Shape{shape.n(), static_cast<std::int64_t>(truth.size()) / shape.n()}, truth);
  const auto outputs = runner.op(
      ops::kContrastiveLoss, std::make_shared<const ops::ContrastiveParams>(p), {src, wanted}, "y");
  runner.graph().set_role(outputs[2], graph::Role::kOutput);
  runner.keep(outputs[0]);
  runner.differentiate({});
  runner.run();
  const auto size = static_cast<std::size_t>(shape.elements() / shape.n());
  const Values want = deltas_of(p, Values(x.begin(), x.end()), size, items, length, step);
  Floats dx = initial_gradient(options, shape);
  std::vector<double> costs(static_cast<std::size_t>(shape.n()), 0.0);
  double largest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    dx[i] += static_cast<float>(want[i]);
    costs[i / size] += want[i] * want[i];
    largest = std::max(largest, std::abs(want[i]));
  }
  EXPECT_GT(largest, 0);
  EXPECT_EQ(runner.value(outputs[0]), x);
  expect_close(runner.gradient(src), dx, 1e-5F, "dx");
  std::vector<double> got(costs.size());
  std::memcpy(got.data(), runner.executor().bytes(outputs[2]).data(), got.size() * sizeof(double));
  for (std::size_t i = 0; i < costs.size(); ++i) EXPECT_NEAR(got[i], costs[i], 1e-4 * costs[i]);
}

TEST(Contrastive, ComparesImagesByTheirClass) {
  for_each_way([](const RunnerOptions& options) {
    ops::ContrastiveParams p;
    p.classes = 3;
    p.label_threshold = 0.1F;
    p.temperature = 0.5F;
    p.cls_normalizer = 0.7F;
    p.max_delta = 0.4F;
    p.step_images = 6;
    // The last class above the threshold; images 4 and 5 have none and belong together.
    const Floats truth{1, 0, 0.1F, 0, 1, 0, 0.5F, 0.5F, 0, 0.2F, 0, 0, 0, 0, 0.05F, 0, 0, 0};
    const std::vector<Item> items{{0, 0, 0, 0}, {1, 0, 1, 0},  {2, 0, 1, 0},
                                  {3, 0, 0, 0}, {4, 0, -1, 0}, {5, 0, -1, 0}};
    expect_loss(p, Shape{6, 7, 1, 1}, truth, items, 7, 1, options);
    p.step_images = 2;  // only neighbours meet
    p.max_delta = 100;
    const Floats pairs{1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1};
    const std::vector<Item> neighbours{{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 1, 0},
                                       {3, 0, 1, 0}, {4, 0, 2, 0}, {5, 0, 2, 0}};
    expect_loss(p, Shape{6, 7, 1, 1}, pairs, neighbours, 7, 1, options);
  });
}

TEST(Contrastive, ComparesTruthsByTheirTrack) {
  for_each_way([](const RunnerOptions& options) {
    ops::ContrastiveParams p;
    p.yolo.emplace();
    p.yolo->classes = 2;
    p.yolo->anchors = {8, 8, 32, 32, 64, 64};
    p.yolo->mask = {0, 1};
    p.yolo->max_truths = 5;
    p.yolo->net_w = p.yolo->net_h = 64;
    p.yolo->grid_w = 3;
    p.yolo->grid_h = 2;
    p.temperature = 0.8F;
    p.max_delta = 10;
    p.step_images = 3;
    constexpr std::size_t kLength = 9;
    // x, y, size -> row of the truth; small ones take anchor 0, others anchor 1, giants none.
    const Floats truth{
        // image 0: two of class 0 with tracks 1 and 2, a giant, and one whose place the next takes
        0.1F, 0.1F, 0.1F, 0.1F, 0, 1, 0.5F, 0.1F, 0.5F, 0.5F, 0, 2, 0.5F, 0.5F, 1, 1, 0, 1,  //
        0.9F, 0.9F, 0.1F, 0.1F, 0, 7, 0.9F, 0.8F, 0.1F, 0.1F, 1, 3,
        // image 1: tracks 1 and 2 again, and track 4
        0.5F, 0.9F, 0.1F, 0.1F, 0, 1, 0.9F, 0.1F, 0.5F, 0.5F, 0, 2, 0.1F, 0.9F, 0.5F, 0.5F, 0, 4, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        // image 2: track 3 of class 1, track 1
        0.1F, 0.1F, 0.1F, 0.1F, 1, 3, 0.5F, 0.1F, 0.1F, 0.1F, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0};
    const auto at = [&](std::size_t anchor, std::size_t cell) {
      return anchor * kLength * 6 + cell;
    };
    const std::vector<Item> items{{0, at(0, 0), 1, 0}, {0, at(1, 1), 2, 0}, {0, at(0, 5), 3, 1},
                                  {1, at(0, 4), 1, 0}, {1, at(1, 2), 2, 0}, {1, at(1, 3), 4, 0},
                                  {2, at(0, 0), 3, 1}, {2, at(0, 1), 1, 0}};
    for (const int negatives : {0, 1, 3, 100}) {
      p.negatives = negatives;
      expect_loss(p, Shape{3, 18, 2, 3}, truth, items, kLength, 6, options);
    }
  });
}

}  // namespace
}  // namespace lantern::test
