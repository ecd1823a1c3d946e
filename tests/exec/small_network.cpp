#include "exec/small_network.hpp"

#include <algorithm>

namespace lantern::test {

namespace {

constexpr const char* kCfg = R"([net]
width=32
height=32
channels=3
batch=4
subdivisions=2
learning_rate=0.01
momentum=0.9
decay=0.0005
policy=constant
max_batches=100

[convolutional]
batch_normalize=1
filters=16
size=3
stride=2
pad=1
activation=leaky

[convolutional]
batch_normalize=1
filters=16
size=1
activation=mish

[convolutional]
batch_normalize=1
filters=16
size=3
pad=1
activation=leaky

[shortcut]
from=-3
activation=linear

[convolutional]
batch_normalize=1
filters=20
size=3
pad=1
activation=swish

[route]
layers=-1
groups=2
group_id=1

[maxpool]
size=2
stride=2

[convolutional]
filters=21
size=1
activation=linear

[yolo]
mask=0,1,2
anchors=5,7, 10,14, 23,27
classes=2
num=3
max=8

[route]
layers=-3

[upsample]
stride=2

[route]
layers=-1,4

[convolutional]
filters=21
size=1
activation=linear

[yolo]
mask=0,1,2
anchors=5,7, 10,14, 23,27
classes=2
num=3
max=8
)";

}  // namespace

ops::RunContext SmallNetwork::context(std::int64_t iteration, int subdivision) const {
  return {.iteration = iteration,
          .subdivision = subdivision,
          .learning_rate = 0.01F,
          .momentum = 0.9F,
          .decay = 0.0005F,
          .batch = static_cast<float>(kMiniBatch * kSubdivisions),
          .max_iterations = 100};
}

void SmallNetwork::iterate(std::int64_t iteration) {
  const std::size_t image_floats = images.size() / kSubdivisions;
  const std::size_t truth_floats = truth.size() / kSubdivisions;
  for (int s = 0; s < kSubdivisions; ++s) {
    const auto at = static_cast<std::size_t>(s);
    model->run_mini_batch(std::span(images).subspan(at * image_floats, image_floats),
                          std::span(truth).subspan(at * truth_floats, truth_floats),
                          context(iteration, s));
  }
  model->update(context(iteration, 0));
}

std::vector<float> SmallNetwork::state() const {
  std::vector<float> all;
  const auto append = [&](graph::TensorId tensor) {
    const std::vector<float> values = model->executor().read(tensor);
    all.insert(all.end(), values.begin(), values.end());
  };
  for (const layers::ParameterBinding& binding : model->lowered().parameters) {
    append(binding.tensor);
    if (binding.momentum) append(*binding.momentum);
  }
  return all;
}

void random_truth(Rng& rng, std::span<float> truth, std::int64_t images) {
  std::ranges::fill(truth, 0.0F);
  const std::size_t floats = truth.size() / static_cast<std::size_t>(images);
  for (std::size_t at = 0; at < truth.size(); at += floats) {
    for (std::size_t box = 0; box < 3; ++box) {
      const std::span<float> row = truth.subspan(at + box * 6, 6);
      for (std::size_t v = 0; v < 4; ++v) row[v] = rng.uniform(0.15F, 0.7F);
      row[4] = static_cast<float>(rng.uniform_int(0, 1));
    }
  }
}

SmallNetwork small_network(std::uint64_t seed, int threads, bool keep_everything) {
  Diagnostics diagnostics;
  layers::Network network = layers::load_network("small.cfg", kCfg, diagnostics);
  diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  SmallNetwork small;
  small.model = std::make_unique<exec::Model>(
      std::move(network), exec::ModelOptions{.training = true,
                                             .mini_batch = SmallNetwork::kMiniBatch,
                                             .forward_batch = SmallNetwork::kMiniBatch,
                                             .threads = threads,
                                             .plan = {.keep_everything = keep_everything}});
  small.model->initialise(seed);
  constexpr std::int64_t kImages = SmallNetwork::kMiniBatch * SmallNetwork::kSubdivisions;
  small.images.resize(
      static_cast<std::size_t>(kImages * small.model->network().input().elements()));
  Rng rng(seed, "images");
  for (float& value : small.images) value = rng.uniform();
  const std::int64_t truth_floats = small.model->lowered().truth_floats;
  small.truth.resize(static_cast<std::size_t>(kImages * truth_floats));
  random_truth(rng, small.truth, kImages);
  return small;
}

}  // namespace lantern::test
