// Weights of recurrent sections: the order of the file, and matrices that old files transpose.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "core/file.hpp"
#include "io/model_weights.hpp"

namespace lantern::io {
namespace {

layers::Network load(const std::string& section) {
  Diagnostics diagnostics;
  layers::Network network = layers::load_network(
      "net.cfg",
      "[net]\nwidth=2\nheight=2\nchannels=3\nbatch=1\n[convolutional]\nfilters=2\nsize=1\n" +
          section,
      diagnostics);
  diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  return network;
}

std::vector<float> counted(std::int64_t floats) {
  std::vector<float> values(static_cast<std::size_t>(floats));
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

class RecurrentWeights : public ::testing::TestWithParam<const char*> {};

TEST_P(RecurrentWeights, GoThroughAModelInTheOrderOfTheFile) {
  const layers::Network network = load(GetParam());
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) /
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::create_directories(folder);
  const WeightsLayout layout = weights_layout(network);
  for (const std::int32_t minor : {2, 1001}) {
    const WeightsHeader header{.minor = minor, .revision = 0};
    const std::vector<float> values = counted(network.parameters());
    std::string bytes(static_cast<std::size_t>(header.size()), '\0');
    std::memcpy(bytes.data() + 4, &minor, sizeof minor);
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    const auto path = folder / "given.weights";
    std::ofstream(path, std::ios::binary) << bytes;
    exec::Model model(network, {.forward_batch = 1});
    Diagnostics warnings;
    load_weights(model, path, Purpose::kEvaluation, warnings);
    EXPECT_TRUE(warnings.entries().empty());

    // Every array stands where the list of arrays says; a matrix of a connected sub-layer is
    // stored the other way round in an old file.
    std::size_t next = 0;
    for (const layers::ParameterBinding& binding : model.lowered().parameters) {
      const std::vector<float> got = model.executor().read(binding.tensor);
      const Shape& shape = model.lowered().graph.type(binding.tensor).shape;
      const bool turned = minor == 1001 && shape.rank() == 2;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const auto columns = static_cast<std::size_t>(turned ? shape[1] : 1);
        const std::size_t rows = got.size() / columns;
        const std::size_t at = turned ? i % columns * rows + i / columns : i;
        ASSERT_EQ(got[i], values[next + at]) << binding.array << " element " << i;
      }
      next += got.size();
    }
    EXPECT_EQ(next, values.size());
    save_weights(model, folder / "saved.weights", header);
    EXPECT_EQ(read_file(folder / "saved.weights"), bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sections, RecurrentWeights,
    ::testing::Values("[rnn]\nhidden=3\noutput=2\nbatch_normalize=1\n", "[gru]\noutput=3\n",
                      "[lstm]\noutput=3\nbatch_normalize=1\n",
                      "[crnn]\nhidden=3\noutput=4\npad=1\nbatch_normalize=1\n",
                      "[conv_lstm]\noutput=2\npad=1\npeephole=1\n",
                      "[conv_lstm]\noutput=2\npad=1\nbottleneck=1\nbatch_normalize=1\n"));

}  // namespace
}  // namespace lantern::io
