// Filters tied by turns, mirrors and scales, and centred gradients: the transformations, and what
// the ops of the update make of them.

#include "ops/tied_filters/tied_filters.hpp"

#include "ops/finite_difference.hpp"
#include "ops/op_runner.hpp"
#include "ops/sgd/sgd.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;
using ops::FilterTie;
using ops::ref::tie_kernel;

const Values kNine{1, 2, 3, 4, 5, 6, 7, 8, 9};

Values tied(FilterTie tie, std::int64_t part, bool back, const Values& src, double angle = 15) {
  Values dst(src.size());
  tie_kernel(tie, angle, part, back, static_cast<std::int64_t>(std::sqrt(src.size())), src.data(),
             dst.data());
  return dst;
}

TEST(TieKernel, RotatesClockwise) {
  EXPECT_EQ(tied(FilterTie::kRotate, 0, false, kNine), kNine);
  EXPECT_EQ(tied(FilterTie::kRotate, 1, false, kNine), (Values{7, 4, 1, 8, 5, 2, 9, 6, 3}));
  EXPECT_EQ(tied(FilterTie::kRotate, 2, false, kNine), (Values{9, 8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(tied(FilterTie::kRotate, 3, false, kNine), (Values{3, 6, 9, 2, 5, 8, 1, 4, 7}));
}

TEST(TieKernel, SwayTurnsBothWaysAndMirrors) {
  // At a right angle the turn is exact.
  const Values right = tied(FilterTie::kSway, 1, false, kNine, 90);
  const Values left = tied(FilterTie::kSway, 2, false, kNine, 90);
  expect_near(right, {7, 4, 1, 8, 5, 2, 9, 6, 3}, 1e-9);
  expect_near(left, {3, 6, 9, 2, 5, 8, 1, 4, 7}, 1e-9);
  EXPECT_EQ(tied(FilterTie::kSway, 3, false, kNine), (Values{3, 2, 1, 6, 5, 4, 9, 8, 7}));
  // What falls outside is made up for: a filter of ones keeps its sum.
  const Values ones(25, 1.0);
  const Values turned = tied(FilterTie::kSway, 1, false, ones, 30);
  EXPECT_NEAR(dot(turned, ones), 25, 1e-9);
  EXPECT_LT(turned[0], turned[12]);
}

TEST(TieKernel, StretchScalesAboutTheMiddle) {
  // Half a tap beyond the border at 0.8: the middle column reads itself, the outer ones 1 / 0.8.
  const Values dst = tied(FilterTie::kStretch, 2, false, kNine);
  EXPECT_NEAR(dst[4], 5 / 0.8, 1e-12);
  EXPECT_NEAR(dst[5], (1 - 0.25) * 6 / 0.8, 1e-12);  // a quarter falls outside
  const Values wide = tied(FilterTie::kStretch, 3, false, kNine);
  EXPECT_NEAR(wide[5], (5 + (6 - 5) / 1.3) / 1.3, 1e-12);
  const Values eighth = tied(FilterTie::kStretchSway, 4, false, kNine);
  EXPECT_NEAR(eighth[5], (5 + (6 - 5) / 1.4) / 1.4, 1e-12);
  EXPECT_EQ(tied(FilterTie::kStretchSway, 7, false, kNine),
            tied(FilterTie::kSway, 3, false, kNine));
}

TEST(TieKernel, GoesBackTheWayItCame) {
  for (const std::int64_t part : {0, 1, 2, 3}) {
    EXPECT_EQ(tied(FilterTie::kRotate, part, true, tied(FilterTie::kRotate, part, false, kNine)),
              kNine);
  }
  EXPECT_EQ(tied(FilterTie::kSway, 3, true, tied(FilterTie::kSway, 3, false, kNine)), kNine);
  for (const std::int64_t part : {1, 2}) {
    expect_near(
        tied(FilterTie::kSway, part, true, tied(FilterTie::kSway, part, false, kNine, 90), 90),
        kNine, 1e-9);
  }
  // Back from 1.3 is a stretch by 1 / 1.3.
  const Values back = tied(FilterTie::kStretch, 3, true, kNine);
  EXPECT_NEAR(back[4], 5 * 1.3, 1e-12);
}

// The update of one array of weights [filters, channels, size, size] by hand and by the ops.
struct Update {
  ops::TiedFiltersParams params;
  std::int64_t channels = 3;

  std::int64_t count() const { return params.filters * channels * params.size * params.size; }
  Values projected(Values u, bool ties) const {
    const std::int64_t area = params.size * params.size;
    const std::int64_t parts = ops::ref::tie_parts(params.tie);
    const std::int64_t part_values = count() / parts;
    if (ties) {
      Values mean(static_cast<std::size_t>(part_values), 0.0);
      Values one(static_cast<std::size_t>(area));
      for (std::int64_t i = 0; i < count(); i += area) {
        tie_kernel(params.tie, static_cast<double>(params.angle), i / part_values, true,
                   params.size, u.data() + i, one.data());
        for (std::int64_t k = 0; k < area; ++k)
          mean[static_cast<std::size_t>(i % part_values + k)] +=
              one[static_cast<std::size_t>(k)] / static_cast<double>(parts);
      }
      for (std::int64_t i = 0; i < count(); ++i)
        u[static_cast<std::size_t>(i)] = mean[static_cast<std::size_t>(i % part_values)];
    }
    if (!params.centre) return u;
    const std::int64_t length = count() / params.filters;
    for (std::int64_t f = 0; f < params.filters; ++f) {
      double sum = 0;
      for (std::int64_t i = 0; i < length; ++i) sum += u[static_cast<std::size_t>(f * length + i)];
      for (std::int64_t i = 0; i < length; ++i)
        u[static_cast<std::size_t>(f * length + i)] -= sum / static_cast<double>(length);
    }
    return u;
  }
};

TEST(FilterUpdate, MovesTiedWeightsTogetherDuringTheFirstHalfOfTheRun) {
  for (const FilterTie tie : {FilterTie::kNone, FilterTie::kSway, FilterTie::kRotate,
                              FilterTie::kStretch, FilterTie::kStretchSway}) {
    for (const bool centre : {false, true}) {
      Update update;
      update.params.tie = tie;
      update.params.centre = centre;
      update.params.filters = 8;
      update.params.size = 3;
      graph::Graph graph;
      const Shape shape{8, 3, 3, 3};
      const auto add = [&](const char* name, graph::Role role) {
        return graph.add_tensor(name, {shape}, role);
      };
      const TensorId w = add("w", graph::Role::kParameter);
      const TensorId d = add("d", graph::Role::kParameterGradient);
      const TensorId m = add("m", graph::Role::kState);
      const TensorId made = add("g", graph::Role::kGradient);
      update.params.weights = w;
      const auto params = std::make_shared<const ops::TiedFiltersParams>(update.params);
      graph.add_op_to(ops::kFilterGradient, params, {d, m}, {made}, {false},
                      graph::ProgramKind::kUpdate, 0);
      auto sgd = std::make_shared<ops::SgdParams>();
      sgd->decays = true;
      graph.add_op_to(ops::kSgdStep, sgd, {made}, {w, m}, {true, true}, graph::ProgramKind::kUpdate,
                      0);
      graph.add_op_to(ops::kTieFilters, params, {}, {w}, {true}, graph::ProgramKind::kUpdate, 0);
      ops::Selection selection = ops::select(graph, {.threads = 2});
      plan::Program program = plan::make_program(selection.selected);
      plan::check(selection.selected, program);
      exec::Executor executor(std::move(selection), std::move(program), 2);
      Rng rng(71, "tied");
      const Floats start = random_floats(rng, update.count());
      Values weights(start.begin(), start.end());
      Values buffer(start.size(), 0.0);
      executor.write(w, start);
      for (const std::int64_t iteration : {1, 2, 3, 4, 5}) {  // of 6: tied up to the third
        const bool ties = tie != FilterTie::kNone && iteration <= 3;
        const Floats gradient = random_floats(rng, update.count());
        executor.write(d, gradient);
        executor.run(graph::ProgramKind::kUpdate, {.iteration = iteration,
                                                   .learning_rate = 0.1F,
                                                   .momentum = 0.5F,
                                                   .decay = 0.01F,
                                                   .batch = 2,
                                                   .max_iterations = 6});
        Values u = buffer;
        for (std::size_t i = 0; i < u.size(); ++i) u[i] += static_cast<double>(gradient[i]);
        u = update.projected(std::move(u), ties);
        for (std::size_t i = 0; i < u.size(); ++i) {
          u[i] -= 0.02 * weights[i];
          weights[i] += 0.05 * u[i];
          buffer[i] = 0.5 * u[i];
        }
        if (ties) {
          const std::int64_t part_values = update.count() / ops::ref::tie_parts(tie);
          const Values first(weights.begin(), weights.begin() + part_values);
          for (std::int64_t i = 0; i < update.count(); i += 9) {
            tie_kernel(tie, 15.0, i / part_values, false, std::int64_t{3},
                       first.data() + i % part_values, weights.data() + i);
          }
        }
        expect_close(executor.read(w), Floats(weights.begin(), weights.end()), 1e-5F, "w");
        expect_close(executor.read(m), Floats(buffer.begin(), buffer.end()), 1e-5F, "m");
      }
    }
  }
}

}  // namespace
}  // namespace lantern::test
