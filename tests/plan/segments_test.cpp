#include "plan/segments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/problem.hpp"

namespace lantern::plan {
namespace {

using graph::ProgramKind;
using graph::Role;

TEST(ChunkEnds, CoverAllImagesInGroupsOfFourWhileThereAreEnough) {
  for (std::int64_t images = 1; images <= 70; ++images) {
    for (int chunks = 1; chunks <= 64; chunks *= 2) {
      const std::vector<std::int64_t> ends = chunk_ends(images, chunks);
      ASSERT_EQ(ends.back(), images);
      ASSERT_TRUE(std::ranges::is_sorted(ends));
      ASSERT_LE(ends.size(), static_cast<std::size_t>(chunks));
      if (ceil_div(images, 4) < chunks) continue;
      ASSERT_EQ(ends.size(), static_cast<std::size_t>(chunks));
      for (std::size_t i = 0; i + 1 < ends.size(); ++i) ASSERT_EQ(ends[i] % 4, 0);
    }
  }
}

TEST(ChunkEnds, OfFewerChunksAreAmongThoseOfMore) {
  for (std::int64_t images = 8; images <= 130; ++images) {
    for (int chunks = 2; chunks <= ceil_div(images, 4); chunks *= 2) {
      const std::vector<std::int64_t> fine = chunk_ends(images, chunks);
      for (const std::int64_t end : chunk_ends(images, chunks / 2))
        ASSERT_TRUE(std::ranges::binary_search(fine, end)) << images << " " << chunks;
    }
  }
}

// images -> conv -> x; statistics of x -> mean; y = apply(x, mean); head whole; dW += f(y).
struct Chain {
  graph::Selected selected;
  std::uint32_t images, x, mean, y, out, dw;

  explicit Chain(std::int64_t n) {
    const auto tensor = [&](const char* name, Role role, bool divided) {
      selected.tensors.push_back({.name = name,
                                  .role = role,
                                  .bytes = divided ? n * 1024 : 1024,
                                  .images = divided ? n : 0});
      return static_cast<std::uint32_t>(selected.tensors.size() - 1);
    };
    images = tensor("images", Role::kInput, true);
    x = tensor("x", Role::kActivation, true);
    mean = tensor("mean", Role::kStatistic, false);
    y = tensor("y", Role::kActivation, true);
    out = tensor("out", Role::kOutput, true);
    dw = tensor("dw", Role::kParameterGradient, false);
    op({images}, x, n, false, 0);
    op({x}, mean, n, false, 0);
    op({x, mean}, y, n, false, 0);
    op({y}, dw, n, true, 4);
    op({y}, out, 0, false, 0);
  }
  void op(std::vector<std::uint32_t> reads, std::uint32_t write, std::int64_t n, bool accumulates,
          std::int64_t group) {
    selected.ops.push_back({.op = "op",
                            .program = ProgramKind::kMiniBatch,
                            .reads = std::move(reads),
                            .writes = {write},
                            .accumulates = {accumulates},
                            .image_group = group,
                            .images = n,
                            .seconds = 1});
  }
  std::vector<std::uint32_t> ops() const {
    std::vector<std::uint32_t> all(selected.ops.size());
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }
};

TEST(Segments, EndWhereASumIsReadAndWhereAnOpRunsWhole) {
  const Chain chain(16);
  const std::vector<Segment> segments = find_segments(chain.selected, chain.ops());
  ASSERT_EQ(segments.size(), 3U);
  EXPECT_EQ(segments[0].first, 0U);
  EXPECT_EQ(segments[0].last, 1U);  // the convolution and its statistics
  EXPECT_EQ(segments[0].most_chunks, 16);
  EXPECT_EQ(segments[1].last, 3U);        // the apply and the weight gradient
  EXPECT_EQ(segments[1].most_chunks, 4);  // four groups of four images
  EXPECT_EQ(segments[2].images, 0);       // whole
}

TEST(Problem, CutsTensorsAsTheCoarserOfTheirSegments) {
  const Chain chain(16);
  const std::vector<std::uint32_t> ops = chain.ops();
  const std::vector<Segment> segments = find_segments(chain.selected, ops);
  const Problem problem = make_problem(chain.selected, ops, segments, {4, 2, 1}, 0.25);
  const auto pieces_of = [&](std::uint32_t tensor) {
    return std::ranges::count_if(problem.pieces,
                                 [&](const Piece& piece) { return piece.tensor == tensor; });
  };
  EXPECT_EQ(pieces_of(chain.x), 2);  // written in four parts, read in two
  EXPECT_EQ(pieces_of(chain.y), 1);  // read whole
  // Chunk by chunk inside a segment; x's two halves are each complete after two of the four.
  ASSERT_EQ(problem.steps.size(), 4U * 2 + 2 * 2 + 1);
  EXPECT_EQ(problem.steps[0].op, 0U);
  EXPECT_EQ(problem.steps[1].op, 1U);
  EXPECT_EQ(problem.steps[2].op, 0U);
  EXPECT_EQ(problem.steps[2].first_image, 4);
  EXPECT_DOUBLE_EQ(problem.steps[0].seconds, 0.25 + 0.25);
  double seconds = 0;
  for (const Step& step : problem.steps) seconds += step.seconds;
  EXPECT_DOUBLE_EQ(seconds, 5 + 13 * 0.25);
}

TEST(Problem, SumsAndWhatIsAddedToCannotBeComputedAgain) {
  const Chain chain(16);
  const std::vector<std::uint32_t> ops = chain.ops();
  const Problem problem =
      make_problem(chain.selected, ops, find_segments(chain.selected, ops), {1, 1, 1}, 0);
  for (const Piece& piece : problem.pieces) {
    const bool expected = piece.tensor == chain.x || piece.tensor == chain.y;
    EXPECT_EQ(piece.can_recompute, expected) << chain.selected.tensors[piece.tensor].name;
  }
}

}  // namespace
}  // namespace lantern::plan
