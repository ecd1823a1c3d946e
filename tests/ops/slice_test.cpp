// Maps that are written into, and read out of, slices of a wider tensor: the same bits as with a
// copy of the slice between the two ops.

#include "ops/batch_norm/batch_norm.hpp"
#include "ops/concat/concat.hpp"
#include "ops/conv/conv.hpp"
#include "ops/conv_run.hpp"
#include "ops/op_runner.hpp"
#include "ops/upsample/upsample.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;
using ops::Activation;

// Three maps joined: one behind a batch norm and one enlarged, in either order, then one copied.
struct Join {
  std::int64_t n = 3, h = 6, w = 10;
  std::int64_t normalised = 32, enlarged = 16, copied = 9;
  bool enlarged_first = true, in_place = false, fixed = false;
  Activation activation = Activation::kMish;

  std::vector<Floats> run(const RunnerOptions& options) const {
    Rng rng(71, "joined maps");
    OpRunner runner(options);
    const auto source = [&](const std::string& name, const Shape& shape) {
      return runner.source(name, shape, random_floats(rng, shape.elements()));
    };
    const TensorId x = source("x", {n, normalised, h, w});
    const TensorId small = source("small", {n, enlarged, h / 2, w / 2});
    const TensorId plain = source("plain", {n, copied, h, w});
    const Shape channels{normalised};
    const TensorId gamma =
        runner.parameter("gamma", channels, random_floats(rng, normalised, 0.5F, 2));
    const TensorId beta = runner.parameter("beta", channels, random_floats(rng, normalised));
    std::vector<TensorId> statistics{
        runner.input("mean", channels, random_floats(rng, normalised)),
        runner.input("variance", channels, random_floats(rng, normalised, 0.5F, 2))};
    if (!fixed) {
      statistics =
          runner.op(ops::kBatchNormStatistics, std::make_shared<const graph::OpParams>(), {x}, "s");
    }
    const ops::BatchNormParams norm(activation, false, fixed);
    const ops::UpsampleParams upsample(2, false, 0.5F);
    const std::vector<TensorId> normal{x, statistics[0], statistics[1], gamma, beta};
    std::vector<ops::ConcatPart> parts;
    std::vector<TensorId> inputs;
    const auto add = [&](ops::ConcatPart part, const std::vector<TensorId>& from) {
      parts.push_back(std::move(part));
      inputs.insert(inputs.end(), from.begin(), from.end());
    };
    const auto add_enlarged = [&] {
      if (in_place) return add({upsample, enlarged}, {small});
      add(ops::ChannelSlice{0, enlarged},
          runner.op(ops::kUpsampleForward, std::make_shared<const ops::UpsampleParams>(upsample),
                    {small}, "up"));
    };
    if (enlarged_first) add_enlarged();
    if (in_place) {
      add({norm, normalised}, normal);
    } else {
      add(ops::ChannelSlice{0, normalised},
          runner.op(ops::kBatchNormApply, std::make_shared<const ops::BatchNormParams>(norm),
                    normal, "bn"));
    }
    if (!enlarged_first) add_enlarged();
    add(ops::ChannelSlice{0, copied}, {plain});
    const TensorId y = runner.op(ops::kConcatForward,
                                 std::make_shared<const ops::ConcatParams>(parts), inputs, "y")[0];
    runner.keep(y);
    runner.differentiate({{y, random_floats(rng, n * (normalised + enlarged + copied) * h * w)}});
    runner.run();
    return {runner.value(y),        runner.gradient(x),     runner.gradient(small),
            runner.gradient(plain), runner.gradient(gamma), runner.gradient(beta)};
  }
};

TEST(Slice, MadeInPlaceHasTheBitsOfACopy) {
  for_each_way([&](const RunnerOptions& options) {
    for (const bool fixed : {false, true}) {
      for (const Activation activation : {Activation::kMish, Activation::kLeaky}) {
        for (const bool enlarged_first : {false, true}) {
          Join join{.enlarged_first = enlarged_first, .fixed = fixed, .activation = activation};
          const std::vector<Floats> copied = join.run(options);
          join.in_place = true;
          EXPECT_EQ(join.run(options), copied)
              << "fixed " << fixed << ", enlarged first " << enlarged_first;
        }
      }
    }
  });
}

// A convolution of the channels [first, first + ic) of a wider source.
std::vector<Floats> convolved_slice(const ops::ConvGeometry& g, std::int64_t channels,
                                    std::int64_t first, bool in_place, RunnerOptions options) {
  Rng rng(72, "slice of a source");
  OpRunner runner(options);
  const Shape wide{g.n, channels, g.ih, g.iw};
  const TensorId x = runner.source("x", wide, random_floats(rng, wide.elements()));
  const TensorId w = runner.parameter("w", Shape{g.oc, g.ic / g.groups, g.kh, g.kw},
                                      random_floats(rng, g.weights_count()));
  const TensorId b = runner.parameter("b", Shape{g.oc}, random_floats(rng, g.oc));
  TensorId source = x;
  if (!in_place) {
    source = runner.op(
        ops::kConcatForward,
        std::make_shared<const ops::ConcatParams>(std::vector{ops::ChannelSlice{first, g.ic}}), {x},
        "slice")[0];
  }
  const TensorId y = runner.op(
      ops::kConvForward, std::make_shared<const ops::ConvParams>(g, true, in_place ? first : 0),
      {source, w, b}, "y")[0];
  runner.keep(y);
  runner.differentiate({{y, random_floats(rng, g.n * g.oc * g.oh * g.ow)}});
  runner.run();
  return {runner.value(y), runner.gradient(x), runner.gradient(b), runner.gradient(w)};
}

TEST(Slice, ReadInPlaceHasTheBitsOfACopy) {
  // The gradient of the weights is summed image by image: the map is large enough for that either
  // way in the first, so the sums are the same ones.
  for (const std::int64_t side : {28, 7}) {
    const ops::ConvGeometry g = square(3, 64, side, 64, 3);
    for_each_way([&](const RunnerOptions& options) {
      const std::vector<Floats> copied = convolved_slice(g, 128, 64, false, options);
      const std::vector<Floats> read = convolved_slice(g, 128, 64, true, options);
      EXPECT_EQ(read[0], copied[0]);
      EXPECT_EQ(read[1], copied[1]);
      EXPECT_EQ(read[2], copied[2]);
      if (side == 28) {
        EXPECT_EQ(ops::image_group(g), 1);
        EXPECT_EQ(read[3], copied[3]);
      } else {
        expect_close(read[3], copied[3], 1e-5F, "dw");
      }
    });
  }
}

}  // namespace
}  // namespace lantern::test
