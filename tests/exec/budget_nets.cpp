#include "exec/budget_nets.hpp"

#include <algorithm>

#include "core/diagnostics.hpp"
#include "core/rng.hpp"
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

std::vector<BudgetNet> budget_nets() {
  return {
      {"dropout", kDropout, 0},
      {"recurrent", kRecurrent, 0},
      {"yolov3-tiny", "yolov3-tiny.cfg", 96},
      {"yolov4-tiny", "yolov4-tiny.cfg", 96},
      {"yolov3-spp", "yolov3-spp.cfg", 64},
      {"yolov4", "yolov4.cfg", 64},
      {"yolov4-csp", "yolov4-csp.cfg", 64},
  };
}

layers::Network load(const BudgetNet& net) {
  layers::Network network;
  if (net.cfg.find('\n') != std::string::npos) {
    Diagnostics diagnostics;
    network = layers::load_network(net.name, net.cfg, diagnostics);
    diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  } else {
    network = layers::load_network_file(LANTERN_TEST_DATA "/cfg/" + net.cfg);
  }
  return net.size > 0 ? layers::resized(network, net.size, net.size) : network;
}

std::vector<float> trained_state(const layers::Network& network, const exec::ModelOptions& options,
                                 int iterations) {
  exec::Model model(network, options);
  model.initialise(7);
  const std::int64_t images = options.mini_batch;
  const std::int64_t truth_floats = model.lowered().truth_floats;
  std::vector<float> pixels(static_cast<std::size_t>(images * network.input().elements()));
  std::vector<float> truth(static_cast<std::size_t>(images * truth_floats));
  for (int i = 1; i <= iterations; ++i) {
    Rng rng(11, "images", static_cast<std::uint32_t>(i));
    for (float& value : pixels) value = rng.uniform();
    random_truth(rng, truth, images);
    const ops::RunContext context{.seed = 3,
                                  .iteration = i,
                                  .learning_rate = 0.001F,
                                  .momentum = 0.9F,
                                  .decay = 0.0005F,
                                  .batch = static_cast<float>(images),
                                  .max_iterations = 100};
    model.run_mini_batch(pixels, truth, context);
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
