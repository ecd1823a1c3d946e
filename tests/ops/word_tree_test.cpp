// Word trees in [softmax] and [region].

#include "ops/softmax/word_tree.hpp"

#include "ops/finite_difference.hpp"
#include "ops/op_runner.hpp"
#include "ops/region/region.hpp"
#include "ops/softmax/softmax.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

// Two roots; children 2..4 of 0, 5..6 of 1, 7..8 of 3.
std::shared_ptr<const ops::WordTree> tree() {
  return std::make_shared<const ops::WordTree>(ops::WordTree::of({-1, -1, 0, 0, 0, 1, 1, 3, 3}));
}

constexpr std::size_t kGroup[] = {0, 0, 1, 1, 1, 2, 2, 3, 3};
constexpr std::size_t kFirst[] = {0, 2, 5, 7};
constexpr std::size_t kCount[] = {2, 3, 2, 2};

TEST(WordTree, GroupsNeighboursWithOneParent) {
  const auto t = tree();
  ASSERT_EQ(t->groups.size(), 4U);
  for (std::size_t g = 0; g < 4; ++g) {
    EXPECT_EQ(t->groups[g].first, static_cast<std::int64_t>(kFirst[g]));
    EXPECT_EQ(t->groups[g].count, static_cast<std::int64_t>(kCount[g]));
  }
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(t->group_of[i], static_cast<int>(kGroup[i]));
  // The same parent again further down is a group of its own.
  EXPECT_EQ(ops::WordTree::of({-1, 0, 1, 0}).groups.size(), 4U);
}

TEST(WordTree, MultipliesDownFromTheRoot) {
  const Floats p{0.75F, 0.25F, 0.5F, 0.25F, 0.25F, 0.5F, 0.5F, 0.125F, 0.875F};
  EXPECT_EQ(tree()->probability(p.data(), 1), 0.25F);
  EXPECT_EQ(tree()->probability(p.data(), 4), 0.75F * 0.25F);
  EXPECT_EQ(tree()->probability(p.data(), 7), 0.75F * 0.25F * 0.125F);
}

TEST(SoftmaxTree, HasOneSoftmaxAGroupAndNoLossWhereTheTruthIsMasked) {
  for_each_way([](const RunnerOptions& options) {
    const Shape shape{2, 9, 1, 1};
    Rng rng(61, "tree");
    const Floats x = random_floats(rng, 18, -2, 2);
    // Image 0 is node 7: its ancestors are set, groups off the path have no loss.
    Floats truth{1, 0, 0, 1, 0, -1234, -1234, 1, 0, 0, 1, -1234, -1234, -1234, 1, 0, -1234, -1234};
    OpRunner runner(options);
    const TensorId src = runner.source("x", shape, x);
    const TensorId wanted = runner.input("truth", Shape{2, 9}, truth);
    auto params = std::make_shared<ops::SoftmaxParams>(1, 1.0F);
    params->tree = tree();
    const auto outputs = runner.op(ops::kSoftmaxLoss, params, {src, wanted}, "p");
    runner.graph().set_role(outputs[2], graph::Role::kOutput);
    runner.keep(outputs[0]);
    runner.differentiate({});
    runner.run();
    Floats p(18);
    Floats dx = initial_gradient(options, shape);
    double costs[] = {0, 0};
    for (std::size_t i = 0; i < 18; ++i) {
      const std::size_t base = i / 9 * 9;
      double sum = 0;
      for (std::size_t k = 0; k < kCount[kGroup[i % 9]]; ++k)
        sum += std::exp(static_cast<double>(x[base + kFirst[kGroup[i % 9]] + k]));
      p[i] = static_cast<float>(std::exp(static_cast<double>(x[i])) / sum);
      if (truth[i] == -1234) continue;
      dx[i] += truth[i] - p[i];
      if (truth[i] != 0) costs[i / 9] -= std::log(static_cast<double>(p[i]));
    }
    expect_close(runner.value(outputs[0]), p, 1e-6F, "p");
    expect_close(runner.gradient(src), dx, 1e-6F, "dx");
    double got[2];
    std::memcpy(got, runner.executor().bytes(outputs[2]).data(), sizeof got);
    for (int i : {0, 1}) EXPECT_NEAR(got[i], costs[i], 1e-5);
  });
}

ops::RegionParams region_params() {
  ops::RegionParams p;
  p.classes = 9;
  p.anchors = {1.0F, 1.5F, 3.0F, 2.0F};
  p.max_truths = 2;
  p.softmax = true;
  p.bias_match = true;
  p.class_scale = 3;
  p.grid_w = 4;
  p.grid_h = 3;
  p.tree = tree();
  return p;
}

std::size_t class_at(const ops::RegionParams& p, std::int64_t cell, std::int64_t a,
                     std::int64_t k) {
  return static_cast<std::size_t>((a * p.entries() + 5 + k) * p.grid_w * p.grid_h + cell);
}

TEST(RegionTree, DrawsTheClassAndItsAncestorsUp) {
  const ops::RegionParams p = region_params();
  Rng rng(62, "region tree");
  Values raw = random_values(rng, p.image_size(), -2, 2);
  const Floats input(raw.begin(), raw.end());
  Floats output(input.size());
  Floats delta(input.size());
  const Floats truth{0.6F, 0.4F, 0.7F, 0.6F, 7, 0, 0, 0, 0, 0, 0, 0};  // cell 6, second anchor
  ops::region_activate(p, input.data(), output.data());
  ops::region_delta(p, output.data(), truth.data(), false, delta.data());
  // Minus the scale times the log of the probability of node 7, through the softmaxes.
  auto loss = [&] {
    double log_probability = 0;
    for (const std::size_t node : {7U, 3U, 0U}) {
      double sum = 0;
      for (std::size_t k = 0; k < kCount[kGroup[node]]; ++k) {
        sum +=
            std::exp(raw[class_at(p, 6, 1, static_cast<std::int64_t>(kFirst[kGroup[node]] + k))]);
      }
      log_probability += raw[class_at(p, 6, 1, static_cast<std::int64_t>(node))] - std::log(sum);
    }
    return -3 * log_probability;
  };
  for (std::int64_t cell = 0; cell < 12; ++cell) {
    for (std::int64_t a = 0; a < 2; ++a) {
      for (std::int64_t k = 0; k < 9; ++k) {
        const std::size_t at = class_at(p, cell, a, k);
        EXPECT_NEAR(delta[at], -central_difference(raw, at, loss), 1e-4);
      }
    }
  }
}

TEST(RegionTree, GivesALabelOfTheWholeImageToTheLikeliestPlaceOnly) {
  const ops::RegionParams p = region_params();
  Rng rng(63, "region tree");
  const Floats input = random_floats(rng, p.image_size(), -2, 2);
  Floats output(input.size());
  Floats delta(input.size());
  const Floats truth{999999, 999999, 999999, 999999, 5, 0, 0.6F, 0.4F, 0.7F, 0.6F, 7, 0};
  ops::region_activate(p, input.data(), output.data());
  ops::region_delta(p, output.data(), truth.data(), true, delta.data());
  std::int64_t best = 0;
  double largest = 0;
  for (std::int64_t place = 0; place < 24; ++place) {
    const float* v = output.data() + place * p.entries();
    const double score = static_cast<double>(v[4]) * v[5 + 5] * v[5 + 1];
    if (score <= largest) continue;
    largest = score;
    best = place;
  }
  Floats want(delta.size(), 0.0F);
  const float* v = output.data() + best * p.entries() + 5;
  for (const auto& [node, first, count] : {std::array{5, 5, 2}, std::array{1, 0, 2}}) {
    for (int k = first; k < first + count; ++k)
      want[class_at(p, best / 2, best % 2, k)] = 3 * ((k == node ? 1.0F : 0.0F) - v[k]);
  }
  EXPECT_EQ(delta, want);
}

TEST(RegionCoords, ThoseBeyondFourAreHandedOnWithoutLoss) {
  ops::RegionParams four = region_params();
  four.tree = nullptr;
  ops::RegionParams six = four;
  six.coords = 6;
  Rng rng(64, "region coords");
  const Floats wide = random_floats(rng, six.image_size(), -2, 2);
  // The same planes without the two behind the classes.
  Floats narrow;
  for (std::int64_t i = 0; i < six.image_size(); ++i) {
    if (i / 12 % 16 < 14) narrow.push_back(wide[static_cast<std::size_t>(i)]);
  }
  const Floats truth{0.6F, 0.4F, 0.7F, 0.6F, 2, 0, 0, 0, 0, 0, 0, 0};
  Floats output4(narrow.size()), delta4(narrow.size()), output6(wide.size()), delta6(wide.size());
  ops::region_activate(four, narrow.data(), output4.data());
  ops::region_activate(six, wide.data(), output6.data());
  const double cost = ops::region_delta(four, output4.data(), truth.data(), true, delta4.data());
  EXPECT_EQ(ops::region_delta(six, output6.data(), truth.data(), true, delta6.data()), cost);
  std::size_t at = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (i / 12 % 16 >= 14) {
      EXPECT_EQ(delta6[i], 0);
    } else {
      EXPECT_EQ(delta6[i], delta4[at++]);
    }
  }
  for (std::size_t place = 0; place < 24; ++place) {
    for (std::size_t e = 0; e < 16; ++e) {
      const float in = wide[(place % 2 * 16 + e) * 12 + place / 2];
      EXPECT_EQ(output6[place * 16 + e], e < 14 ? output4[place * 14 + e] : in);
    }
  }
}

}  // namespace
}  // namespace lantern::test
