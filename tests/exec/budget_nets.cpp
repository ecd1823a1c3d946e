#include "exec/budget_nets.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/diagnostics.hpp"
#include "core/rng.hpp"
#include "exec/block_nets.hpp"
#include "exec/small_network.hpp"

namespace lantern::test {

namespace {

// Everything that has state or chance beside the usual: dropout, DropBlock, a pool with overlap, a
// split, a sum, a concatenation, an upsampled branch, a second head.
constexpr const char* kDropout = R"([net]
batch=8
subdivisions=1
width=64
height=64
channels=3
learning_rate=0.01
max_batches=100

[convolutional]
batch_normalize=1
filters=16
size=3
stride=2
pad=1
activation=mish

[convolutional]
batch_normalize=1
filters=32
size=3
stride=1
pad=1
activation=leaky

[dropout]
probability=0.3

[convolutional]
filters=32
size=1
stride=1
activation=swish

[shortcut]
from=-3
activation=linear

[maxpool]
size=3
stride=1

[route]
layers=-1
groups=2
group_id=1

[convolutional]
batch_normalize=1
filters=32
groups=2
size=3
stride=2
pad=1
activation=relu

[dropout]
dropblock=1
dropblock_size_rel=0.3
probability=0.1

[convolutional]
size=1
stride=1
filters=24
activation=linear

[yolo]
mask=0,1,2
anchors=5,7, 10,14, 23,27
classes=3
num=3

[route]
layers=-3

[upsample]
stride=2

[route]
layers=-1,5

[convolutional]
batch_normalize=1
filters=16
size=3
stride=1
pad=1
activation=logistic

[convolutional]
size=1
stride=1
filters=24
activation=linear

[yolo]
mask=0,1,2
anchors=5,7, 10,14, 23,27
classes=3
num=3
)";

// Time steps: parameters that many ops share, states that go on from mini-batch to mini-batch.
constexpr const char* kRecurrent = R"([net]
batch=8
subdivisions=1
time_steps=3
width=32
height=32
channels=3
learning_rate=0.01
max_batches=100

[convolutional]
batch_normalize=1
filters=16
size=3
stride=2
pad=1
activation=leaky

[crnn]
batch_normalize=1
hidden=16
output=24
size=3
pad=1
activation=mish

[shortcut]
from=-2
activation=linear

[conv_lstm]
output=24
size=3
pad=1
bottleneck=1
peephole=1

[convolutional]
batch_normalize=1
filters=16
size=3
stride=2
pad=1
activation=leaky

[history]
history_size=2

[convolutional]
size=1
stride=1
filters=24
activation=linear

[yolo]
mask=0,1,2
anchors=5,7, 10,14, 23,27
classes=3
num=3

[route]
layers=-4

[gru]
output=24

[convolutional]
size=1
stride=1
filters=24
activation=linear

[yolo]
mask=0,1,2
anchors=5,7, 10,14, 23,27
classes=3
num=3
)";

}  // namespace

bool full_run() { return std::getenv("LANTERN_FULL") != nullptr; }

std::vector<BudgetNet> budget_nets() {
  std::vector<BudgetNet> nets{
      {"dropout", kDropout, 0},
      {"recurrent", kRecurrent, 0},
      {"grouped-bottlenecks", grouped_bottlenecks_cfg(), 0},
      {"mixed-kernels", mixed_kernels_cfg(), 0},
      {"permuted-scales", permuted_scales_cfg(), 0},
      {"split-residuals", split_residuals_cfg(), 0},
      {"cross-iteration-norms", cross_iteration_norms_cfg(), 0},
      {"dropped-blocks", dropped_blocks_cfg(), 0},
      {"weighted-sums", weighted_sums_cfg(), 0},
      {"yolov3-tiny", "yolov3-tiny.cfg", 96},
      {"yolov4-tiny", "yolov4-tiny.cfg", 96},
      {"yolov3-spp", "yolov3-spp.cfg", 64},
      {"yolov4", "yolov4.cfg", 64},
      {"yolov4-csp", "yolov4-csp.cfg", 64},
  };
  // The published ones, where the larger data lies beside the checkout.
  const std::filesystem::path shared = LANTERN_SOURCE_DIR "/../shared/cfg/threads/";
  for (const char* name : {"csp/csresnext50", "equivalents/mixnet_m", "equivalents/spinenet49",
                           "csp/csdarknet53-omega", "equivalents/csdarknet53-ws"}) {
    const std::filesystem::path path = shared / (std::string(name) + ".cfg");
    if (full_run() && std::filesystem::exists(path))
      nets.push_back({path.stem().string(), path.string(), 64});
  }
  return nets;
}

layers::Network load(const BudgetNet& net) {
  layers::Network network;
  if (net.cfg.find('\n') != std::string::npos) {
    Diagnostics diagnostics;
    network = layers::load_network(net.name, net.cfg, diagnostics);
    diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  } else {
    // An absolute path stays what it is.
    network = layers::load_network_file(std::filesystem::path(LANTERN_TEST_DATA "/cfg") / net.cfg,
                                        {.batch = 8, .subdivisions = 1});
  }
  return net.size > 0 ? layers::resized(network, net.size, net.size) : network;
}

namespace {
void one_class(Rng& rng, std::span<float> truth, std::int64_t images) {
  std::ranges::fill(truth, 0.0F);
  const std::size_t classes = truth.size() / static_cast<std::size_t>(images);
  for (std::size_t at = 0; at < truth.size(); at += classes)
    truth[at +
          static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(classes) - 1))] = 1;
}
}  // namespace

std::vector<float> trained_state(const layers::Network& network, const exec::ModelOptions& options,
                                 int iterations) {
  return trained_state(network, options, exec::compile(network, options), iterations);
}

std::vector<float> trained_state(const layers::Network& network, const exec::ModelOptions& options,
                                 exec::Compiled compiled, int iterations) {
  exec::Model model(network, options, std::move(compiled));
  model.initialise(7);
  const std::int64_t images = options.mini_batch;
  const std::int64_t truth_floats = model.lowered().truth_floats;
  std::vector<float> pixels(static_cast<std::size_t>(images * network.input().elements()));
  std::vector<float> truth(static_cast<std::size_t>(images * truth_floats));
  const bool is_classifier =
      std::holds_alternative<layers::SoftmaxSpec>(network.layers.back().spec);
  for (int i = 1; i <= iterations; ++i) {
    Rng rng(11, "images", static_cast<std::uint32_t>(i));
    for (float& value : pixels) value = rng.uniform();
    if (is_classifier) {
      one_class(rng, truth, images);
    } else {
      random_truth(rng, truth, images);
    }
    ops::RunContext context{.seed = 3,
                            .iteration = i,
                            .learning_rate = 0.001F,
                            .momentum = 0.9F,
                            .decay = 0.0005F,
                            .batch = static_cast<float>(images * network.net.subdivisions),
                            .max_iterations = 100};
    for (int s = 0; s < network.net.subdivisions; ++s) {
      context.subdivision = s;
      if (s > 0) std::ranges::reverse(pixels);  // other pictures
      model.run_mini_batch(pixels, truth, context);
    }
    model.update(context);
  }
  std::vector<float> all;
  for (const layers::ParameterBinding& binding : model.lowered().parameters) {
    const std::vector<float> values = model.executor().read(binding.tensor);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace lantern::test
