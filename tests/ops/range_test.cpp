// Every kernel that may run on a range of images gives the bits of one run over all of them,
// however the mini-batch is cut.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.hpp"
#include "core/file.hpp"
#include "layers/lower.hpp"
#include "ops/op_ranges.hpp"

namespace lantern::test {
namespace {

constexpr std::int64_t kImages = 7;  // the last of the groups of four is not full

// What no reference network holds: dropped values, a pool folded into the batch norm before it,
// windows too large for a byte index, maps with several readers so that gradients are added to.
constexpr const char* kExtraNetworks[] = {
    R"([net]
width=24
height=24
channels=3
batch=7
max_batches=100
learning_rate=0.01
[convolutional]
batch_normalize=1
filters=19
size=3
pad=1
activation=leaky
[maxpool]
size=2
stride=2
[convolutional]
batch_normalize=1
filters=32
size=3
pad=1
activation=mish
[dropout]
probability=0.3
[convolutional]
filters=20
size=3
pad=1
activation=swish
[dropout]
dropblock=1
probability=0.4
dropblock_size_abs=3
[convolutional]
batch_normalize=1
filters=20
size=3
pad=1
activation=leaky
[shortcut]
from=-3
activation=mish
[maxpool]
size=17
stride=1
[route]
layers=-1,-2
[convolutional]
filters=3
size=1
activation=linear
[cost]
type=sse
)",
    R"([net]
width=16
height=16
channels=3
batch=7
max_batches=100
learning_rate=0.01
[convolutional]
filters=20
size=3
pad=1
activation=leaky
[convolutional]
batch_normalize=1
filters=20
size=3
pad=1
activation=relu
[avgpool]
[convolutional]
filters=20
size=1
activation=logistic
[scale_channels]
from=-3
activation=linear
[avgpool]
[dropout]
probability=0.5
[connected]
output=6
activation=linear
[softmax]
)",
    R"([net]
width=8
height=8
channels=3
batch=7
max_batches=100
learning_rate=0.01
[convolutional]
filters=20
size=1
activation=linear
[activation]
activation=mish
[convolutional]
filters=24
size=3
pad=1
activation=linear
[shortcut]
from=0
activation=linear
[upsample]
stride=2
[maxpool]
size=2
stride=2
[route]
layers=-1,3,0
[convolutional]
filters=3
size=1
activation=linear
[cost]
type=sse
)",
    R"([net]
width=24
height=24
channels=3
batch=7
max_batches=100
learning_rate=0.01
[crop]
crop_width=20
crop_height=20
flip=1
angle=20
saturation=1.5
exposure=1.5
shift=0.2
[convolutional]
batch_normalize=1
filters=20
size=3
pad=1
stride=2
antialiasing=1
activation=leaky
[normalization]
[maxpool]
size=3
stride=1
maxpool_zero_nonmax=1
[route]
layers=-1,-2,-3
[convolutional]
filters=20
size=3
pad=1
coordconv=1
assisted_excitation=50
activation=leaky
[implicit]
filters=20
[scale_channels]
from=-2
[maxpool]
size=2
stride=2
antialiasing=2
[local]
filters=4
size=3
pad=1
activation=leaky
[connected]
output=108
activation=linear
[detection]
side=3
num=2
coords=4
classes=2
softmax=1
sqrt=1
rescore=1
random=1
)",
    R"([net]
width=6
height=6
channels=3
batch=7
time_steps=2
max_batches=100
learning_rate=0.01
[convolutional]
filters=20
size=3
pad=1
activation=leaky
[crnn]
hidden=18
output=20
size=3
pad=1
batch_normalize=1
activation=leaky
[conv_lstm]
output=20
size=3
pad=1
bottleneck=1
shortcut=1
time_normalizer=0.5
[history]
history_size=2
[gru]
output=20
[cost]
type=sse
)"};

// Ops that run whole, with the reason.
constexpr std::array kWhole{
    std::string_view{"adam_step"},                // on parameters
    std::string_view{"add_parameter_gradient"},   // on values per channel
    std::string_view{"batch_norm_rolling"},       // on values per channel
    std::string_view{"contrastive_loss"},         // compares images with each other
    std::string_view{"cross_batch_merge"},        // on values per channel
    std::string_view{"filter_gradient"},          // on parameter gradients
    std::string_view{"finite_check"},             // on parameter gradients
    std::string_view{"join_images"},              // its inputs have fewer images than its output
    std::string_view{"linear_backward_weights"},  // sums in registers; its operands are vectors
    std::string_view{"local_backward_weights"},   // its sums would take two floats a weight
    std::string_view{"place_images"},             // as slice_images
    std::string_view{"sgd_step"},                 // on parameters
    std::string_view{"average_step"},
    std::string_view{"slice_images"},  // its output has fewer images than its input
    std::string_view{"tie_filters"},   // on parameters
};

std::vector<std::string> networks() {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(LANTERN_TEST_DATA) + "/golden/cases")) {
    folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  std::vector<std::string> texts(std::begin(kExtraNetworks), std::end(kExtraNetworks));
  for (const auto& folder : folders) texts.push_back(read_file(folder / "case.cfg"));
  return texts;
}

layers::Lowered lower(const std::string& cfg) {
  Diagnostics diagnostics;
  const layers::Network network = layers::load_network("case.cfg", cfg, diagnostics);
  diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  return layers::lower(
      network,
      {.training = true, .mini_batch = kImages * network.net.time_steps, .forward_batch = kImages});
}

TEST(Ranges, EveryKernelGivesTheBitsOfTheWholeMiniBatch) {
  RangeCoverage coverage;
  for (const std::string& cfg : networks()) {
    SCOPED_TRACE(cfg);
    for (const auto& [block, threads] : {std::pair{16, 2}, std::pair{8, 1}, std::pair{1, 3}}) {
      SCOPED_TRACE(::testing::Message() << "block " << block << ", threads " << threads);
      OpRanges(lower(cfg).graph, {.threads = threads, .block = block}).compare(coverage);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  for (const ops::KernelEntry& entry : ops::kernel_table()) {
    const std::string kind(entry.op->name);
    if (std::ranges::find(kWhole, entry.op->name) != kWhole.end()) {
      EXPECT_FALSE(coverage.divided.contains(kind)) << kind << " is said to run whole";
    } else {
      EXPECT_TRUE(coverage.divided.contains(kind)) << kind << " has run on no range of images";
    }
  }
  EXPECT_TRUE(coverage.divided.contains("reorder"));
  // Ops that add to a gradient are kernels of their own.
  for (const char* kind :
       {"activation_backward", "add_backward", "concat_backward", "conv_backward_data", "copy",
        "max_pool_backward", "reorder", "upsample_backward"}) {
    EXPECT_TRUE(coverage.accumulated.contains(kind)) << kind << " has added on no range of images";
  }
}

}  // namespace
}  // namespace lantern::test
