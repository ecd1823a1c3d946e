// Every published cfg of the shared set, at the smallest size that its layers accept: a forward
// pass and one iteration of training with finite numbers, or a refusal for a reason that is known.
// LANTERN_FULL=1: also the networks of more than kMostQuick parameters (five minutes more, 5 GiB).

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "core/rng.hpp"
#include "exec/model.hpp"
#include "layers/compatibility.hpp"
#include "support.hpp"

namespace lantern::layers {
namespace {

namespace fs = std::filesystem;
using testing::load_path;
using testing::shared_dir;

constexpr std::int64_t kMostQuick = 30'000'000;
constexpr int kMiniBatch = 2;  // sequences

bool full() { return std::getenv("LANTERN_FULL") != nullptr; }

// Files that are refused, by what the message says.
const std::map<std::string, std::string> kRefused{
    {"csresnet50-elastic-panet-spp.cfg", "layer 168 joins"},
    {"csresnext50-elastic-panet-spp.cfg", "layer 168 joins"},
    {"yolov3-spp-matrix.cfg", "shares the weights of layer 115"},
    {"darknet53_448_xnor.cfg", "binary and xnor convolutions"},
    {"xyolo.test.cfg", "binary and xnor convolutions"},
    {"tiny-yolo_xnor.cfg", "binary and xnor convolutions"},
    {"yolov3-tiny_xnor.cfg", "binary and xnor convolutions"},
};

// Names of the files of cfg/, "threads/csp/resnet10.cfg"; none where the set is absent.
std::vector<std::string> all_files() {
  std::vector<std::string> files;
  if (!fs::exists(shared_dir() / "cfg")) return files;
  for (const auto& entry : fs::recursive_directory_iterator(shared_dir() / "cfg")) {
    if (entry.path().extension() == ".cfg")
      files.push_back(fs::relative(entry.path(), shared_dir() / "cfg").string());
  }
  std::ranges::sort(files);
  return files;
}

// yolo9000 names files that are not published beside it; its classes are flat here.
void forget_class_files(Network& network) {
  for (Layer& layer : network.layers) {
    if (auto* region = std::get_if<RegionSpec>(&layer.spec)) {
      region->tree.clear();
      region->map.clear();
    }
  }
}

// The network at the smallest of some sizes, or as it is where it has no pictures or other sizes
// are refused.
Network smallest(const Network& network) {
  if (network.net.width == 0) return network;
  for (const int side : {32, 64, 96, 128, 192, 256, 320, 512}) {
    if (side >= std::max(network.net.width, network.net.height)) break;
    try {
      Network small = resized(network, side, side);
      const layers::Lowered lowered =
          lower(small, {.training = true, .mini_batch = small.net.time_steps, .forward_batch = 0});
      // A loss over no cell at all says nothing.
      if (!lowered.losses.empty()) return small;
    } catch (const Error&) {
      continue;
    }
  }
  return network;
}

std::vector<float> random_values(const char* name, std::int64_t count) {
  Rng rng(6, name);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = rng.uniform();
  return values;
}

// Classes of what finds boxes; none for a classifier.
std::optional<int> box_classes(const Network& network) {
  std::optional<int> classes;
  for (const Layer& layer : network.layers) {
    if (const auto keys = detection_keys(layer)) classes = keys->classes;
  }
  return classes;
}

// Two boxes an image, in rows of six, or one class of all.
std::vector<float> random_truth(const Network& network, std::int64_t floats, std::int64_t images) {
  std::vector<float> truth(static_cast<std::size_t>(floats * images), 0.0F);
  const std::optional<int> classes = box_classes(network);
  for (std::int64_t i = 0; floats > 0 && i < images; ++i) {
    Rng rng(6, "truth", 0, static_cast<std::uint32_t>(i));
    float* image = truth.data() + i * floats;
    if (!classes) {
      image[rng.uniform_int(0, floats - 1)] = 1;
      continue;
    }
    for (int box = 0; box < 2; ++box) {
      float* row = image + std::ptrdiff_t{6} * box;
      for (int v = 0; v < 4; ++v) row[v] = rng.uniform(0.2F, 0.6F);
      row[4] = static_cast<float>(rng.uniform_int(0, *classes - 1));
    }
  }
  return truth;
}

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

// Initial weights, but variances as of trained layers: with those of 0 that they start with, every
// layer that reads them (of inference, or frozen) enlarges 300 times.
void start(exec::Model& model) {
  model.initialise(5);
  for (std::size_t i = 0; i < model.lowered().parameters.size(); ++i) {
    const ParameterBinding& binding = model.lowered().parameters[i];
    if (!binding.array.ends_with("rolling_variance")) continue;
    const std::int64_t count = model.lowered().graph.type(binding.tensor).shape.elements();
    model.set_parameter(i, std::vector<float>(static_cast<std::size_t>(count), 1.0F));
  }
}

void expect_a_forward_pass(const Network& network) {
  const std::int64_t images = std::int64_t{kMiniBatch} * network.net.time_steps;
  exec::Model model(network, {.forward_batch = images, .threads = 2});
  start(model);
  model.forward(random_values("images", images * network.input().elements()));
  const auto& outputs = model.lowered().forward_outputs;
  const auto last = std::find_if(outputs.rbegin(), outputs.rend(),
                                 [](const auto& tensor) { return tensor.has_value(); });
  ASSERT_NE(last, outputs.rend());
  const std::vector<float> values = model.executor().read(**last);
  EXPECT_FALSE(values.empty());
  EXPECT_TRUE(all_finite(values)) << "outputs";
  for (const HeadBinding& head : model.lowered().heads)
    EXPECT_TRUE(all_finite(model.executor().read(head.output))) << "head " << head.layer;
}

void expect_an_iteration(const Network& network) {
  const std::int64_t images = std::int64_t{kMiniBatch} * network.net.time_steps;
  exec::Model model(network,
                    {.training = true, .mini_batch = images, .forward_batch = 0, .threads = 2});
  start(model);
  const ops::RunContext context{.iteration = 1,
                                .learning_rate = 1e-3F,
                                .momentum = 0.9F,
                                .decay = 5e-4F,
                                .batch = static_cast<float>(images),
                                .max_iterations = 100};
  model.run_mini_batch(random_values("images", images * network.input().elements()),
                       random_truth(network, model.lowered().truth_floats, images), context);
  const std::vector<exec::LossReport> losses = model.losses();
  for (const exec::LossReport& loss : losses) {
    EXPECT_TRUE(std::isfinite(loss.cost)) << "loss of layer " << loss.layer;
  }
  EXPECT_EQ(model.find_non_finite_gradient(context), std::nullopt);
  if (!losses.empty()) {
    const bool moves =
        std::ranges::any_of(model.lowered().parameters, [&](const ParameterBinding& binding) {
          return binding.gradient && std::ranges::any_of(model.executor().read(*binding.gradient),
                                                         [](float g) { return g != 0; });
        });
    EXPECT_TRUE(moves) << "all gradients are 0";
  }
  model.update(context);
  for (const ParameterBinding& binding : model.lowered().parameters) {
    EXPECT_TRUE(all_finite(model.executor().read(binding.tensor)))
        << "layer " << binding.layer << ", " << binding.array;
  }
}

void expect_both(const Network& network) {
  expect_a_forward_pass(network);
  expect_an_iteration(network);
}

class StockSteps : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StockSteps);

TEST_P(StockSteps, AreFiniteOrRefusedForTheirKnownReason) {
  const fs::path path = shared_dir() / "cfg" / GetParam();
  const auto known = kRefused.find(path.filename().string());
  testing::Loaded loaded = load_path(path);
  std::string refusal;
  if (!loaded.ok()) {
    refusal = loaded.messages();
  } else {
    forget_class_files(loaded.network);
    loaded.network.net.time_steps = std::min(loaded.network.net.time_steps, 3);
    if (!full() && known == kRefused.end() && loaded.network.parameters() > kMostQuick)
      GTEST_SKIP() << "has " << loaded.network.parameters() << " parameters: with LANTERN_FULL=1";
    try {
      const Network network = smallest(loaded.network);
      RecordProperty("width", network.net.width);
      expect_both(network);
    } catch (const Error& error) {
      refusal = error.what();
    }
  }
  if (known == kRefused.end()) {
    EXPECT_EQ(refusal, "");
  } else {
    EXPECT_NE(refusal.find(known->second), std::string::npos) << refusal;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, StockSteps, ::testing::ValuesIn(all_files()),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

TEST(StockNetworks, RunAndTrainRectangular) {
  const fs::path path = shared_dir() / "cfg/threads/equivalents/mixnet_m_gpu.cfg";
  if (!fs::exists(path)) GTEST_SKIP() << "the shared reference set is absent";
  const testing::Loaded loaded = load_path(path);
  ASSERT_TRUE(loaded.ok()) << loaded.messages();
  const Network network = resized(loaded.network, 288, 96);
  EXPECT_EQ(network.net.width, 288);
  EXPECT_EQ(network.net.height, 96);
  expect_both(network);
}

}  // namespace
}  // namespace lantern::layers
