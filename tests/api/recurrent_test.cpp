// Networks with recurrent layers through the public interface: sequences side by side.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "api/classifier_file.hpp"
#include "core/file.hpp"
#include "core/rng.hpp"
#include "exec/model.hpp"
#include "io/model_weights.hpp"
#include "lantern/lantern.h"
#include "lantern/net.hpp"

namespace lantern::test {
namespace {

constexpr const char* kCfg = R"([net]
width=12
height=8
channels=3
time_steps=4
[convolutional]
batch_normalize=1
filters=6
size=3
stride=2
pad=1
activation=leaky
[crnn]
batch_normalize=1
hidden=6
output=8
size=3
pad=1
activation=leaky
[conv_lstm]
output=6
size=3
pad=1
peephole=1
[history]
history_size=2
[avgpool]
[gru]
output=7
[lstm]
output=6
[connected]
output=4
activation=linear
[softmax]
)";

constexpr int kSequences = 3, kSteps = 5;

class RecurrentNet : public ::testing::Test {
 protected:
  RecurrentNet() {
    write_file_atomically(cfg_, kCfg);
    exec::Model model(layers::load_network_file(cfg_), {.forward_batch = 1});
    model.initialise(7);
    Rng rng(8, "recurrent");
    for (std::size_t i = 0; i < model.lowered().parameters.size(); ++i) {
      const std::string& array = model.lowered().parameters[i].array;
      std::vector<float> values(model.view_parameter(i).size(), 1.0F);
      if (!array.ends_with("rolling_variance") && !array.ends_with("scales")) {
        for (float& value : values) value = rng.uniform(-0.5F, 0.5F);
      }
      model.set_parameter(i, values);
    }
    io::save_weights(model, weights_, {});
    for (float& value : frames_) value = rng.uniform();
  }

  std::span<const float> frame(int step, int sequence) const {
    return std::span(frames_).subspan(
        static_cast<std::size_t>(step * kSequences + sequence) * kFrame, kFrame);
  }

  static constexpr std::size_t kFrame = 12 * 8 * 3;
  TemporaryFolder folder_;
  std::string cfg_ = folder_.path() / "net.cfg", weights_ = folder_.path() / "net.weights";
  /// [step][sequence][channels][height][width]
  std::vector<float> frames_ = std::vector<float>(kSteps * kSequences * kFrame);
};

void expect_near(std::span<const float> got, std::span<const float> want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << what;
}

TEST_F(RecurrentNet, SequencesSideBySideAreThoseOneAfterTheOther) {
  Net alone = Net::load(cfg_, weights_);
  EXPECT_TRUE(alone.is_recurrent());
  std::vector<std::vector<float>> want(kSteps * kSequences);
  for (int s = 0; s < kSequences; ++s) {
    alone.reset();
    for (int t = 0; t < kSteps; ++t)
      want[static_cast<std::size_t>(t * kSequences + s)] = alone.predict(frame(t, s));
  }
  // Without a memory the last step would be what it is alone.
  alone.reset();
  const std::vector<float> fresh = alone.predict(frame(kSteps - 1, 0));
  float difference = 0;
  for (std::size_t i = 0; i < fresh.size(); ++i)
    difference += std::abs(fresh[i] - want[(kSteps - 1) * kSequences][i]);
  EXPECT_GT(difference, 1e-3);

  Net together = Net::load(cfg_, weights_, {.batch = kSequences});
  for (const bool at_once : {false, true}) {
    together.reset();
    std::vector<float> got;
    for (int t = 0; t < (at_once ? 1 : kSteps); ++t) {
      const int steps = at_once ? kSteps : 1;
      const std::vector<float> part = together.predict(
          std::span(frames_).subspan(static_cast<std::size_t>(t * kSequences) * kFrame,
                                     static_cast<std::size_t>(steps * kSequences) * kFrame),
          steps * kSequences);
      got.insert(got.end(), part.begin(), part.end());
    }
    const auto size = static_cast<std::size_t>(together.output_size());
    for (std::size_t i = 0; i < want.size(); ++i)
      expect_near(std::span(got).subspan(i * size, size), want[i], std::to_string(i));
  }
}

TEST_F(RecurrentNet, PicturesThatAreNoWholeStepsAreRefused) {
  Net net = Net::load(cfg_, weights_, {.batch = 2});
  const std::vector<float> before = net.predict(std::span(frames_).first(2 * kFrame), 2);
  try {
    net.predict(frame(0, 0));
    FAIL();
  } catch (const Exception& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("2 sequences"), std::string::npos) << error.what();
  }
  const ImageView view{
      .data = frames_.data(), .width = 12, .height = 8, .format = ImageView::Format::kF32Chw};
  EXPECT_THROW(net.classify(view), Exception);
  // Nothing has moved on.
  net.reset();
  EXPECT_EQ(net.predict(std::span(frames_).first(2 * kFrame), 2), before);
}

TEST_F(RecurrentNet, InCStartsAgainWithResetRnn) {
  lantern_network* net = lantern_load_network_custom(cfg_.c_str(), weights_.c_str(), 0, 2);
  ASSERT_NE(net, nullptr) << lantern_last_error();
  const auto step = [&] {
    const float* out = lantern_network_predict(net, frames_.data());
    return std::vector<float>(out, out + 2 * lantern_network_outputs(net));
  };
  const std::vector<float> first = step();
  EXPECT_NE(step(), first);
  lantern_reset_rnn(net);
  EXPECT_EQ(step(), first);
  lantern_free_network(net);
}

}  // namespace
}  // namespace lantern::test
