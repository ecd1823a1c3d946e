// Concatenation of channel slices against the reference loops: moving values changes no bit.

#include "ops/concat/concat.hpp"

#include "ops/concat/concat_ref.hpp"
#include "ops/op_runner.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

void check_against_reference(std::int64_t n, std::int64_t h, std::int64_t w,
                             const std::vector<ops::ref::ChannelSlice>& slices,
                             const std::vector<std::size_t>& from, std::uint32_t trial) {
  for_each_way([&](const RunnerOptions& options) {
    Rng rng(61, "concat values", 0, trial);
    OpRunner runner(options);
    std::vector<Shape> shapes;  // of distinct sources; slices[i] is taken from source from[i]
    std::vector<Floats> values;
    std::vector<TensorId> sources;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (from[i] < sources.size()) continue;
      shapes.push_back({n, slices[i].channels, h, w});
      values.push_back(random_floats(rng, shapes.back().elements()));
      sources.push_back(
          runner.source("x" + std::to_string(sources.size()), shapes.back(), values.back()));
    }
    std::vector<TensorId> inputs;
    std::vector<ops::ChannelSlice> parts;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      inputs.push_back(sources[from[i]]);
      parts.push_back({slices[i].first, slices[i].count});
    }
    const Floats dy = random_floats(rng, n * ops::ref::concat_channels(slices) * h * w);
    const TensorId dst = runner.op(
        ops::kConcatForward, std::make_shared<const ops::ConcatParams>(parts), inputs, "y")[0];
    runner.keep(dst);
    runner.differentiate({{dst, dy}});
    runner.run();
    Floats y(dy.size());
    std::vector<Floats> dx;
    for (const Shape& shape : shapes) dx.push_back(initial_gradient(options, shape));
    std::vector<const float*> in;
    std::vector<float*> out;
    for (const std::size_t source : from) {
      in.push_back(values[source].data());
      out.push_back(dx[source].data());
    }
    ops::ref::concat_forward<float>(n, h * w, slices, in, y.data());
    ops::ref::concat_backward<float>(n, h * w, slices, dy.data(), out);
    ASSERT_EQ(runner.value(dst), y);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      expect_close(runner.gradient(sources[i]), dx[i], 1e-6F, "dx " + std::to_string(i));
    }
  });
}

TEST(Concat, MatchesTheReferenceOnRandomSlices) {
  for (std::uint32_t trial = 0; trial < 24; ++trial) {
    SCOPED_TRACE(::testing::Message() << "trial " << trial);
    Rng rng(60, "concat", 0, trial);
    std::vector<ops::ref::ChannelSlice> slices;
    std::vector<std::size_t> from;
    for (std::int64_t i = rng.uniform_int(1, 4); i > 0; --i) {
      ops::ref::ChannelSlice slice{.channels = rng.uniform_int(1, 50)};
      slice.count = rng.coin() ? slice.channels : rng.uniform_int(1, slice.channels);
      slice.first = rng.uniform_int(0, slice.channels - slice.count);
      from.push_back(slices.size());
      slices.push_back(slice);
    }
    check_against_reference(rng.uniform_int(1, 3), rng.uniform_int(1, 5), rng.uniform_int(1, 5),
                            slices, from, trial);
    if (HasFatalFailure()) return;
  }
}

TEST(Concat, MatchesTheReferenceOnChannelGroups) {
  // The group slices of yolov4-tiny: one half of a source alone, on and off the borders of a block.
  std::uint32_t trial = 100;
  for (const std::int64_t channels : {12, 32, 40, 64}) {
    for (const std::int64_t group : {0, 1}) {
      check_against_reference(2, 3, 5, {ops::ref::channel_group(channels, 2, group)}, {0}, trial++);
    }
    check_against_reference(2, 3, 5, {ops::ref::channel_group(channels, 4, 3), {9, 2, 6}}, {0, 1},
                            trial++);
  }
}

TEST(Concat, ASourceMayOccurTwice) {
  check_against_reference(2, 2, 3, {{20, 0, 20}, {20, 3, 9}}, {0, 0}, 200);
  check_against_reference(2, 2, 3, {{20, 5, 7}, {16, 0, 16}, {20, 3, 9}}, {0, 1, 0}, 201);
}

}  // namespace
}  // namespace lantern::test
