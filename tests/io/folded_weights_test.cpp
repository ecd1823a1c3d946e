// Weights files without the arrays of batch norms, in networks that fold them and that do not.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "core/file.hpp"
#include "io/model_weights.hpp"

namespace lantern::io {
namespace {

constexpr const char* kCfg =
    "[net]\nwidth=4\nheight=4\nchannels=3\nbatch=1\n[convolutional]\nbatch_normalize=1\nfilters=2\n"
    "size=1\nactivation=linear\ndontloadscales=1\n";

// Biases and weights alone.
void write_file(const std::filesystem::path& path) {
  const std::int32_t version[3] = {0, 2, 5};
  const std::uint64_t seen = 0;
  const float values[] = {0.5F, -0.25F, 0.001F, 0.002F, -0.003F, 0.004F, 0.001F, -0.002F};
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(version), sizeof version);
  file.write(reinterpret_cast<const char*>(&seen), sizeof seen);
  file.write(reinterpret_cast<const char*>(values), sizeof values);
}

std::vector<float> outputs(const std::filesystem::path& weights, bool fold) {
  Diagnostics diagnostics;
  layers::Network network = layers::load_network("net.cfg", kCfg, diagnostics);
  diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  exec::Model model(network, {.forward_batch = 1, .fold = fold});
  load_weights(model, weights, Purpose::kEvaluation, diagnostics);
  model.forward(std::vector<float>(4 * 4 * 3, 1.0F));
  return model.executor().read(*model.lowered().forward_outputs.back());
}

// Darknet: a network that was just made has scales of 1, means and variances of 0.
TEST(FoldedWeights, ScalesThatAreNotInTheFileAreOne) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "no_scales.weights";
  write_file(path);
  const std::vector<float> plain = outputs(path, false);
  const std::vector<float> folded = outputs(path, true);
  ASSERT_EQ(plain.size(), folded.size());
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], folded[i], 1e-4) << i;
  EXPECT_NEAR(plain.front(), 0.5, 1e-4) << "the weights of the first filter sum to 0";
  EXPECT_NEAR(plain.back(), -0.25 + 0.003 / std::sqrt(1e-5), 1e-3);
}

}  // namespace
}  // namespace lantern::io
