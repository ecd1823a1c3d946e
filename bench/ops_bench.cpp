// Times single ops at the shapes of yolov3-tiny 416. Usage: bench_ops [--threads=N]
// [--mini-batch=N] [--benchmark_...]

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/text.hpp"
#include "op_bench.hpp"
#include "ops/batch_norm/batch_norm.hpp"
#include "ops/concat/concat.hpp"
#include "ops/conv/conv.hpp"
#include "ops/max_pool/max_pool.hpp"
#include "ops/sgd/sgd.hpp"
#include "ops/upsample/upsample.hpp"
#include "ops/yolo_loss/yolo_op.hpp"

namespace lantern::bench {

namespace {

using graph::TensorId;

Shape shape_of(const OpBench& bench, const Map& map) {
  return {bench.options().mini_batch, map.c, map.side, map.side};
}

/// A convolution as the forward op and the tensors around it; the forward op fixes the layouts.
struct ConvSetup {
  ops::ConvGeometry geometry;
  TensorId src, weights, diff_dst;
  std::vector<TensorId> inputs;
  std::shared_ptr<const ops::ConvParams> forward;
  std::shared_ptr<const ops::ConvGradientParams> backward;

  ConvSetup(OpBench& bench, const Conv& conv)
      : geometry{.n = bench.options().mini_batch,
                 .ic = conv.in,
                 .ih = conv.side,
                 .iw = conv.side,
                 .oc = conv.out,
                 .oh = conv.side,
                 .ow = conv.side,
                 .kh = conv.size,
                 .kw = conv.size,
                 .ph = conv.size / 2,
                 .pw = conv.size / 2} {
    const Map in{conv.in, conv.side};
    src = conv.in == 3 ? bench.input("image", shape_of(bench, in))
                       : bench.data("src", shape_of(bench, in));
    weights = bench.parameter("weights", Shape{conv.out, conv.in, conv.size, conv.size});
    diff_dst = bench.data("diff_dst", shape_of(bench, {conv.out, conv.side}));
    inputs = {src, weights};
    if (conv.head) inputs.push_back(bench.parameter("bias", Shape{conv.out}));
    forward = std::make_shared<const ops::ConvParams>(geometry, conv.head);
    backward = std::make_shared<const ops::ConvGradientParams>(geometry, weights);
  }
};

void add_convolutions(const Options& options) {
  for (const Conv& conv : kConvs) {
    const std::string name = name_of(conv);
    add(options, "conv_forward/" + name, [conv](OpBench& bench) {
      const ConvSetup setup(bench, conv);
      bench.measure(ops::kConvForward, setup.forward, setup.inputs, "dst");
    });
    if (conv.in != 3) {  // nobody asks for the gradient of the image
      add(options, "conv_backward_data/" + name, [conv](OpBench& bench) {
        const ConvSetup setup(bench, conv);
        bench.prepare(ops::kConvForward, setup.forward, setup.inputs, "dst");
        const TensorId diff_src = bench.data("diff_src", shape_of(bench, {conv.in, conv.side}));
        bench.measure_to(ops::kConvBackwardData, setup.backward, {setup.diff_dst, setup.weights},
                         {diff_src});
      });
    }
    add(options, "conv_backward_weights/" + name, [conv](OpBench& bench) {
      const ConvSetup setup(bench, conv);
      bench.prepare(ops::kConvForward, setup.forward, setup.inputs, "dst");
      const TensorId gradient =
          bench.data("diff_weights", Shape{conv.out, conv.in, conv.size, conv.size});
      bench.measure_to(ops::kConvBackwardWeights, setup.backward, {setup.src, setup.diff_dst},
                       {gradient}, {true});
    });
    if (!conv.head) continue;
    add(options, "bias_gradient/" + name, [conv](OpBench& bench) {
      const TensorId diff_dst = bench.data("diff_dst", shape_of(bench, {conv.out, conv.side}));
      const TensorId gradient = bench.data("diff_bias", Shape{conv.out});
      bench.measure_to(ops::kBiasGradient, std::make_shared<const graph::OpParams>(), {diff_dst},
                       {gradient}, {true});
    });
  }
}

enum class Part { kStatistics, kApply, kForward, kReduce, kBackwardApply, kBackward };

/// Batch normalisation with the leaky activation that follows it in the net.
void build_batch_norm(OpBench& bench, const Map& map, Part part) {
  const auto params =
      std::make_shared<const ops::BatchNormParams>(ops::Activation::kLeaky, false, false);
  const TensorId x = bench.data("x", shape_of(bench, map));
  const TensorId gamma = bench.parameter("gamma", Shape{map.c});
  const TensorId beta = bench.parameter("beta", Shape{map.c});
  const bool times_statistics = part == Part::kStatistics || part == Part::kForward;
  const std::vector<TensorId> statistics =
      times_statistics ? bench.measure(ops::kBatchNormStatistics, params, {x}, "statistics")
                       : bench.prepare(ops::kBatchNormStatistics, params, {x}, "statistics");
  if (part == Part::kStatistics) return;
  std::vector<TensorId> inputs{x, statistics[0], statistics[1], gamma, beta};
  if (part == Part::kApply || part == Part::kForward) {
    bench.measure(ops::kBatchNormApply, params, inputs, "y");
    return;
  }
  inputs.insert(inputs.begin(), bench.data("dy", shape_of(bench, map)));
  const auto sums = [&](const char* name) { return bench.data(name, Shape{map.c}); };
  const TensorId sum_dz = sums("sum_dz");
  const TensorId sum_dz_xhat = sums("sum_dz_xhat");
  if (part != Part::kBackwardApply) {
    bench.measure_to(ops::kBatchNormBackwardReduce, params, inputs, {sum_dz, sum_dz_xhat});
  }
  if (part == Part::kReduce) return;
  inputs.push_back(sum_dz);
  inputs.push_back(sum_dz_xhat);
  bench.measure_to(ops::kBatchNormBackwardApply, params, inputs,
                   {bench.data("dx", shape_of(bench, map))});
}

void add_batch_norm(const Options& options) {
  constexpr std::pair<const char*, Part> kParts[] = {
      {"batch_norm_statistics", Part::kStatistics},
      {"batch_norm_apply", Part::kApply},
      {"batch_norm_forward", Part::kForward},
      {"batch_norm_backward_reduce", Part::kReduce},
      {"batch_norm_backward_apply", Part::kBackwardApply},
      {"batch_norm_backward", Part::kBackward}};
  for (const auto& [name, part] : kParts) {
    for (const Map& map : kBatchNormMaps) {
      add(options, fmt::format("{}/{}", name, name_of(map)),
          [map, part = part](OpBench& bench) { build_batch_norm(bench, map, part); });
    }
  }
}

/// [maxpool] pads size - 1 cells, of which the smaller half lies above and to the left.
void build_max_pool(OpBench& bench, const Pool& pool, bool backward) {
  const std::int64_t out = (pool.side - 1) / pool.stride + 1;
  const std::int64_t pad = (pool.size - 1) / 2;
  const ops::PoolGeometry geometry{.n = bench.options().mini_batch,
                                   .c = pool.c,
                                   .ih = pool.side,
                                   .iw = pool.side,
                                   .oh = out,
                                   .ow = out,
                                   .kh = pool.size,
                                   .kw = pool.size,
                                   .sh = pool.stride,
                                   .sw = pool.stride,
                                   .ph = pad,
                                   .pw = pad};
  const auto params = std::make_shared<const ops::PoolParams>(geometry, true);
  const TensorId src = bench.data("src", shape_of(bench, {pool.c, pool.side}));
  if (!backward) {
    bench.measure(ops::kMaxPoolForward, params, {src}, "dst");
    return;
  }
  const TensorId index = bench.prepare(ops::kMaxPoolForward, params, {src}, "dst")[1];
  const TensorId diff_dst = bench.data("diff_dst", shape_of(bench, {pool.c, out}));
  bench.measure_to(ops::kMaxPoolBackward, params, {diff_dst, index},
                   {bench.data("diff_src", shape_of(bench, {pool.c, pool.side}))});
}

void add_pools(const Options& options) {
  for (const bool backward : {false, true}) {
    for (const Pool& pool : kPools) {
      add(options, fmt::format("max_pool_{}/{}", backward ? "backward" : "forward", name_of(pool)),
          [pool, backward](OpBench& bench) { build_max_pool(bench, pool, backward); });
    }
  }
}

void add_data_movement(const Options& options) {
  const auto upsample = std::make_shared<const ops::UpsampleParams>(2, false, 1.0F);
  const Map small{128, 13};
  const Map large{128, 26};
  add(options, "upsample_forward/" + name_of(small), [=](OpBench& bench) {
    bench.measure(ops::kUpsampleForward, upsample, {bench.data("src", shape_of(bench, small))},
                  "dst");
  });
  add(options, "upsample_backward/" + name_of(small), [=](OpBench& bench) {
    const TensorId diff_dst = bench.data("diff_dst", shape_of(bench, large));
    bench.measure_to(ops::kUpsampleBackward, upsample, {diff_dst},
                     {bench.data("diff_src", shape_of(bench, small))});
  });
  const Map other{256, 26};
  const ops::ChannelSlice first{0, large.c};
  const ops::ChannelSlice second{0, other.c};
  add(options, "concat_forward/128+256x26x26", [=](OpBench& bench) {
    bench.measure(
        ops::kConcatForward, std::make_shared<const ops::ConcatParams>(std::vector{first, second}),
        {bench.data("a", shape_of(bench, large)), bench.data("b", shape_of(bench, other))}, "dst");
  });
  add(options, "concat_backward/128+256x26x26", [=](OpBench& bench) {
    const TensorId diff_dst =
        bench.data("diff_dst", shape_of(bench, {large.c + other.c, large.side}));
    bench.measure_to(ops::kConcatBackward,
                     std::make_shared<const ops::ConcatGradientParams>(first, 0), {diff_dst},
                     {bench.data("diff_a", shape_of(bench, large))});
    bench.measure_to(ops::kConcatBackward,
                     std::make_shared<const ops::ConcatGradientParams>(second, large.c), {diff_dst},
                     {bench.data("diff_b", shape_of(bench, other))});
  });
}

void add_update(const Options& options) {
  const Shape shape{1024, 512, 3, 3};  // more than half of the net's parameters
  add(options, "sgd_step/1024x512x3x3", [=](OpBench& bench) {
    auto params = std::make_shared<ops::SgdParams>();
    params->decays = true;
    const TensorId gradient = bench.data("gradient", shape);
    const TensorId weights = bench.parameter("weights", shape);
    bench.measure_to(ops::kSgdStep, params, {gradient}, {weights, bench.data("momentum", shape)},
                     {true, true});
  });
  add(options, "finite_check/1024x512x3x3", [=](OpBench& bench) {
    const TensorId gradient = bench.data("gradient", shape);
    bench.measure_to(ops::kFiniteCheck, std::make_shared<const graph::OpParams>(), {gradient},
                     {bench.data("flags", Shape{1})});
  });
}

/// Truth rows with `boxes` boxes an image; the rest is empty.
std::vector<float> some_truth(std::int64_t images, int rows, int boxes, int classes) {
  std::vector<float> truth(static_cast<std::size_t>(images * rows * 6));
  for (std::int64_t image = 0; image < images; ++image) {
    for (int i = 0; i < boxes; ++i) {
      float* row = truth.data() + (image * rows + i) * 6;
      const auto spread = [&](int step) {
        return static_cast<float>((i * step + image * 7) % 19 + 1) / 21.0F;
      };
      row[0] = spread(5);
      row[1] = spread(11);
      row[2] = 0.5F * spread(3);
      row[3] = 0.5F * spread(8);
      row[4] = static_cast<float>(i * 13 % classes);
    }
  }
  return truth;
}

void add_yolo(const Options& options) {
  for (const std::int64_t side : {std::int64_t{13}, std::int64_t{26}}) {
    add(options, fmt::format("yolo_loss/255x{}x{}_12_boxes", side, side), [side](OpBench& bench) {
      ops::YoloParams yolo;
      yolo.classes = 80;
      yolo.anchors = {10, 14, 23, 27, 37, 58, 81, 82, 135, 169, 344, 319};
      yolo.mask = side == 13 ? std::vector{3, 4, 5} : std::vector{0, 1, 2};
      yolo.ignore_thresh = 0.7F;
      yolo.net_w = yolo.net_h = 416;
      yolo.grid_w = yolo.grid_h = side;
      const std::int64_t images = bench.options().mini_batch;
      const TensorId raw = bench.input("raw", shape_of(bench, {255, side}));
      const TensorId truth = bench.input("truth", Shape{images, std::int64_t{yolo.max_truths} * 6},
                                         some_truth(images, yolo.max_truths, 12, yolo.classes));
      bench.measure(ops::kYoloLoss, std::make_shared<const ops::YoloOpParams>(yolo), {raw, truth},
                    "yolo");
    });
  }
}

/// Takes "--name=N" out of the arguments; nothing when it is absent. Ends the program with code 2
/// on a bad value.
std::optional<std::int64_t> take_flag(int& argc, char** argv, std::string_view name) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument(argv[i]);
    if (!argument.starts_with(name) || argument.size() <= name.size() ||
        argument[name.size()] != '=')
      continue;
    const auto value = parse_int(argument.substr(name.size() + 1));
    if (!value || *value < 1 || *value > 1024) {
      std::fprintf(stderr, "bench_ops: %s is not a number between 1 and 1024\n", argv[i]);
      std::exit(2);
    }
    std::copy(argv + i + 1, argv + argc, argv + i);
    --argc;
    return *value;
  }
  return std::nullopt;
}

}  // namespace

}  // namespace lantern::bench

int main(int argc, char** argv) {
  using namespace lantern::bench;
  Options options;
  options.threads =
      static_cast<int>(take_flag(argc, argv, "--threads").value_or(omp_get_max_threads()));
  options.mini_batch = take_flag(argc, argv, "--mini-batch").value_or(options.mini_batch);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  omp_set_num_threads(options.threads);
  benchmark::AddCustomContext("threads", std::to_string(options.threads));
  benchmark::AddCustomContext("mini_batch", std::to_string(options.mini_batch));
  add_convolutions(options);
  add_batch_norm(options);
  add_pools(options);
  add_onednn_benchmarks(options);
  add_data_movement(options);
  add_update(options);
  add_yolo(options);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
