// The recurrent networks that come with Darknet lower, and train a step at a small size.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/rng.hpp"
#include "exec/model.hpp"

namespace lantern::layers {
namespace {

struct Stock {
  const char* file;
  int side;  ///< of the picture, 0: a vector network
};

class StockRecurrent : public ::testing::TestWithParam<Stock> {};

TEST_P(StockRecurrent, TrainsAStep) {
  Overrides small{.batch = 2, .subdivisions = 1, .time_steps = 3};
  if (GetParam().side > 0) small.width = small.height = GetParam().side;
  const Network network =
      load_network_file(std::string(LANTERN_TEST_DATA "/cfg/") + GetParam().file, small);
  const std::int64_t images = network.minibatch();
  ASSERT_EQ(images, 6);
  exec::Model model(network,
                    {.training = true, .mini_batch = images, .forward_batch = 0, .threads = 2});
  model.initialise(5);
  const auto random = [](const char* name, std::int64_t count) {
    Rng rng(6, name);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& v : values) v = rng.uniform();
    return values;
  };
  std::vector<float> truth = random("truth", images * model.lowered().truth_floats);
  for (std::size_t i = 4; GetParam().side > 0 && i < truth.size(); i += 6) truth[i] = 0;  // class
  const ops::RunContext context{
      .iteration = 1, .learning_rate = 1e-3F, .batch = static_cast<float>(images)};
  model.run_mini_batch(random("images", images * network.input().elements()), truth, context);
  EXPECT_EQ(model.find_non_finite_gradient(context), std::nullopt);
  for (const exec::LossReport& loss : model.losses()) EXPECT_TRUE(std::isfinite(loss.cost));
  std::size_t moved = 0;
  for (const ParameterBinding& binding : model.lowered().parameters) {
    if (!binding.gradient) continue;
    const std::vector<float> gradient = model.executor().read(*binding.gradient);
    if (std::ranges::any_of(gradient, [](float g) { return g != 0; })) ++moved;
  }
  // All but what no loss sees.
  const auto trained = static_cast<std::size_t>(
      std::ranges::count_if(model.lowered().parameters,
                            [](const ParameterBinding& b) { return b.gradient.has_value(); }));
  EXPECT_EQ(moved, trained);
  EXPECT_GT(trained, 0U);
  model.update(context);
  for (const ParameterBinding& binding : model.lowered().parameters) {
    for (const float value : model.executor().read(binding.tensor))
      ASSERT_TRUE(std::isfinite(value)) << binding.array;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, StockRecurrent,
                         ::testing::Values(Stock{"rnn.cfg", 0}, Stock{"rnn.train.cfg", 0},
                                           Stock{"gru.cfg", 0}, Stock{"lstm.train.cfg", 0},
                                           Stock{"crnn.train.cfg", 0},
                                           Stock{"yolov3-tiny_occlusion_track.cfg", 64}),
                         [](const auto& tested) {
                           std::string name = tested.param.file;
                           std::erase_if(name, [](char c) {
                             return !std::isalnum(static_cast<unsigned char>(c));
                           });
                           return name;
                         });

// Every time step of the published length: the graph alone.
TEST(StockRecurrent, LowersAtItsOwnLength) {
  for (const char* file : {"rnn.train.cfg", "lstm.train.cfg", "yolov3-tiny_occlusion_track.cfg"}) {
    const Network network = load_network_file(std::string(LANTERN_TEST_DATA "/cfg/") + file);
    const Lowered lowered =
        lower(network, {.training = true, .mini_batch = network.minibatch(), .forward_batch = 0});
    const auto products = std::ranges::count_if(lowered.graph.ops(), [](const graph::Op& op) {
      return op.def->name == "linear" || op.def->name == "conv_forward";
    });
    EXPECT_GE(products, network.net.time_steps) << file;
  }
}

}  // namespace
}  // namespace lantern::layers
