// detector train within a budget: what it says, what it takes, and that no bit depends on it.

#include <atomic>
#include <regex>

#include "cli/program.hpp"
#include "core/error.hpp"
#include "device/faults.hpp"
#include "device/file_tier.hpp"
#include "train/trainer.hpp"

namespace lantern::cli {
namespace {

namespace fs = std::filesystem;

// Large maps and few weights, so that the budget counts and the run is short.
constexpr const char* kNet = R"([net]
batch=8
subdivisions=1
width=192
height=192
channels=3
learning_rate=0.001
max_batches=3
policy=constant
mosaic=1
{keys}
[convolutional]
batch_normalize=1
filters=16
size=3
stride=1
pad=1
activation=leaky

[convolutional]
batch_normalize=1
filters=16
size=3
stride=1
pad=1
activation=mish

[shortcut]
from=-2
activation=linear

[maxpool]
size=2
stride=2

[convolutional]
batch_normalize=1
filters=32
size=3
stride=2
pad=1
activation=leaky

[maxpool]
size=2
stride=2

[convolutional]
batch_normalize=1
filters=32
size=3
stride=2
pad=1
activation=leaky

[convolutional]
filters=24
size=1
stride=1
pad=1
activation=linear

[yolo]
mask=0,1,2
anchors=20,20, 40,40, 90,90
classes=3
num=3
jitter=.2
ignore_thresh=.7
truth_thresh=1
random={random}
)";

std::string net(const std::string& keys = {}, const std::string& random = "0") {
  std::string text = kNet;
  text.replace(text.find("{keys}"), 6, keys);
  text.replace(text.find("{random}"), 8, random);
  return text;
}

class Memory : public ::testing::Test {
 protected:
  Memory() {
    for (const fs::directory_entry& entry : fs::directory_iterator(LANTERN_TEST_DATA "/bccd-mini"))
      fs::copy(entry.path(), folder / entry.path().filename().string(),
               fs::copy_options::recursive);
    fs::create_directories(folder / "backup");
    put(folder / "net.cfg", net());
  }

  Outcome train(const std::string& flags = {}) const {
    return folder.run("detector train obj.data net.cfg -dont_show --threads 2 " + flags);
  }
  std::string weights() const { return slurp(folder / "backup/net_final.weights"); }

  // The budget that a refusal says would do, MiB.
  int smallest(const std::string& flags = {}) const {
    const Outcome refused = train("--memory 20M " + flags);
    EXPECT_EQ(refused.code, 4) << refused.err;
    std::smatch match;
    EXPECT_TRUE(std::regex_search(refused.err, match,
                                  std::regex("smallest budget that works is memory=([0-9]+)M")))
        << refused.err;
    return match.empty() ? 0 : std::stoi(match[1]);
  }

  WorkFolder folder;
};

// What stands between two texts, as a number of MiB.
double mebibytes(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << before << text;
  if (at == std::string::npos) return 0;
  std::size_t length = 0;
  const double value = std::stod(text.substr(at + before.size()), &length);
  const std::string unit = text.substr(at + before.size() + length, 4);
  EXPECT_EQ(unit, " MiB") << text;
  return value;
}

// Resident sizes before the arena differ between starts by a little.
constexpr int kJitter = 4;

TEST_F(Memory, BoundsTheProcessAndChangesNoBit) {
  const Outcome free = train();
  ASSERT_EQ(free.code, 0) << free.err;
  EXPECT_TRUE(free.says("memory auto, at most ")) << free.err;
  const std::string expected = weights();
  const double most = mebibytes(free.err, "memory used: ");
  const int least = smallest("-map");
  ASSERT_GT(least, 0);
  ASSERT_LT(least + kJitter, most);
  const Outcome tight = train(fmt::format("--memory {}M -map", least + kJitter));
  ASSERT_EQ(tight.code, 0) << tight.err;
  EXPECT_TRUE(weights() == expected) << "the budget changed the weights";
  EXPECT_TRUE(tight.says("% slower than with unlimited memory")) << tight.err;
  EXPECT_TRUE(tight.prints("Last accuracy mAP")) << tight.out;
  const Outcome half = train(fmt::format("-memory {}M", (least + static_cast<int>(most)) / 2));
  ASSERT_EQ(half.code, 0) << half.err;
  EXPECT_TRUE(weights() == expected);
  for (const Outcome* run : {&tight, &half}) {
    const double bound = mebibytes(run->err, "memory ");
    const double stated = mebibytes(run->err, "MiB: ") + mebibytes(run->err, "for the network, ");
    const double peak = mebibytes(run->err, "memory used: ");
    EXPECT_LE(peak, bound) << run->err;
    EXPECT_LE(stated, bound + 0.1) << run->err;
    // The constant: what is kept for a chart, a log and larger pictures.
    EXPECT_GE(peak, 0.98 * stated - 40) << run->err;
  }
}

TEST_F(Memory, RefusesWithWhatWouldDo) {
  const int least = smallest();
  const Outcome refused = train(fmt::format("--memory {}M", least - kJitter - 1));
  EXPECT_EQ(refused.code, 4) << refused.err;
  EXPECT_TRUE(refused.says("mini-batch 8 at 192 x 192 does not fit")) << refused.err;
  EXPECT_TRUE(refused.says("the largest mini-batch for this budget is 4: subdivisions=2 ("))
      << refused.err;
  EXPECT_FALSE(refused.prints("avg loss"));
  const Outcome slow = train(fmt::format("--memory {}M --max_slowdown 0", least + kJitter));
  EXPECT_EQ(slow.code, 4) << slow.err;
  EXPECT_TRUE(slow.says("max_slowdown=0%")) << slow.err;
  EXPECT_TRUE(slow.says("disk_memory=FOLDER:1G (") && slow.says("slower, with a disk of 1 GB/s)"))
      << slow.err;
  const Outcome host = train("--host_memory 4G");
  EXPECT_EQ(host.code, 2);
  EXPECT_TRUE(host.says("RAM is the memory that memory= bounds")) << host.err;
  put(folder / "net.cfg", net("memory=lots"));
  const Outcome wrong = train();
  EXPECT_EQ(wrong.code, 3);
  EXPECT_TRUE(wrong.says("net.cfg:11")) << wrong.err;
}

TEST_F(Memory, UsesTheDisk) {
  ASSERT_EQ(train().code, 0);
  const std::string expected = weights();
  const int least = smallest();
  const Outcome outcome =
      train(fmt::format("--memory {}M --disk_memory .:1G", least + 2 * kJitter));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.says(" on the disk, in the file in .")) << outcome.err;
  EXPECT_TRUE(weights() == expected);
  const Outcome missing = train("--disk_memory ./none:1G");
  EXPECT_EQ(missing.code, 4) << missing.err;
  EXPECT_TRUE(missing.says("none")) << missing.err;
}

TEST_F(Memory, HoldsForAllSizesOfARun) {
  put(folder / "net.cfg", [] {
    std::string text = net("resize_step=64", "1");
    text.replace(text.find("max_batches=3"), 13, "max_batches=131");
    text.replace(text.find("width=192"), 9, "width=64");
    text.replace(text.find("height=192"), 10, "height=64");
    return text.replace(text.find("batch=8"), 7, "batch=4");
  }());
  const Outcome free = train();
  ASSERT_EQ(free.code, 0) << free.err;
  EXPECT_TRUE(free.prints("Resizing")) << free.out;
  const std::string expected = weights();
  const int least = smallest();
  const Outcome tight = train(fmt::format("--memory {}M", least + kJitter));
  ASSERT_EQ(tight.code, 0) << tight.err;
  EXPECT_TRUE(weights() == expected) << "the budget changed the weights";
  EXPECT_LE(mebibytes(tight.err, "memory used: "), mebibytes(tight.err, "memory ")) << tight.err;
}

TEST_F(Memory, ChoosesTheMiniBatch) {
  const Outcome free = train("--mini_batch auto");
  ASSERT_EQ(free.code, 0) << free.err;
  EXPECT_TRUE(free.says("mini_batch=auto: 8 images (1 subdivisions of batch=8)")) << free.err;
  const Outcome tight =
      train(fmt::format("--mini_batch auto --max_slowdown 0 --memory {}M", smallest() + kJitter));
  ASSERT_EQ(tight.code, 0) << tight.err;
  EXPECT_TRUE(tight.says("mini_batch=auto: ")) << tight.err;
  EXPECT_FALSE(tight.says("mini_batch=auto: 8 images")) << tight.err;
  put(folder / "net.cfg", net("mini_batch=2"));
  EXPECT_TRUE(train().says("mini-batch 2 x 4 subdivisions"));
}

TEST_F(Memory, LimitsOfTheSystemAreRespected) {
  const Outcome free = train();
  const std::string expected = weights();
  // Data and heap as `ulimit -d` counts them: the arena must be smaller than without.
  put(folder / "run.sh", "ulimit -d 240000\n'" LANTERN_PROGRAM
                         "' detector train obj.data net.cfg -dont_show --threads 2\n");
  const Outcome tight = folder.run("run.sh", {}, "bash");
  ASSERT_EQ(tight.code, 0) << tight.err;
  EXPECT_LT(mebibytes(tight.err, "MiB: "), mebibytes(free.err, "GiB: ")) << tight.err;
  EXPECT_TRUE(weights() == expected);
}

TEST_F(Memory, WritesATrace) {
  const Outcome outcome = train("--trace trace.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.says("trace of the first 3 iterations: trace.json")) << outcome.err;
  EXPECT_GT(parse_json(slurp(folder / "trace.json"))["traceEvents"].size(), 60U);
}

class Silent final : public train::Console {
 public:
  void line(std::string_view text) override {
    if (text.find("avg loss") != std::string_view::npos) ++iterations;
  }
  void notice(std::string_view text) override { notices += std::string(text) + "\n"; }
  void progress(std::string_view, std::int64_t, std::int64_t, double, std::string_view) override {}
  bool interrupted() const override { return false; }
  std::atomic<int> iterations = 0;
  std::string notices;
};

// The disk fails in the second iteration: what the first has learnt is there.
TEST_F(Memory, ADiskThatFailsCostsOneIteration) {
  put(folder / "one.cfg", [] {
    std::string text = net();
    return text.replace(text.find("max_batches=3"), 13, "max_batches=1");
  }());
  ASSERT_EQ(folder.run("detector train obj.data one.cfg -dont_show --threads 2").code, 0);
  const fs::path home = fs::current_path();
  fs::current_path(folder.path());
  Silent console;
  const auto failing = [&](device::Direction, std::int64_t) {
    if (console.iterations > 0) throw Error(ErrorCode::kResource, "", "the disk is gone");
    return 0.0;
  };
  const train::TrainSettings settings{
      .data_file = "obj.data",
      .cfg_file = "net.cfg",
      .threads = 2,
      .memory = "20M",
      .disk_memory = ".:1G",
      .make_file = [&](Bytes bytes) -> std::shared_ptr<device::Tier> {
        return std::make_shared<device::FaultyTier>(
            std::make_shared<device::FileTier>(
                device::FileTierOptions{.folder = ".", .bytes = bytes}),
            std::vector<device::Fault>{}, failing);
      }};
  const auto failure = [&](const std::string& memory) -> std::string {
    train::TrainSettings within = settings;
    within.memory = memory;
    try {
      train::train_detector(within, console);
    } catch (const Error& error) {
      EXPECT_EQ(exit_code(error.code()), 4) << error.what();
      return error.what();
    }
    return {};
  };
  // The smallest budget of this process, which is larger than the program.
  const std::string refused = failure("20M");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(refused, match, std::regex("works is memory=([0-9]+)M")))
      << refused;
  std::string failed;  // resident sizes differ: a little more memory may need no disk, or less fit
  for (int more = 2; more <= 20 && failed.find("the disk") == std::string::npos; more += 3) {
    console.iterations = 0;
    failed = failure(fmt::format("{}M", std::stoi(match[1]) + more));
  }
  EXPECT_NE(failed.find("the disk is gone"), std::string::npos) << failed;
  EXPECT_NE(failed.find("iteration 2 is dropped, the weights of iteration 1 are in"),
            std::string::npos)
      << failed;
  fs::current_path(home);
  EXPECT_TRUE(slurp(folder / "backup/net_last.weights") ==
              slurp(folder / "backup/one_final.weights"));
}

// A disk that turns out to be much slower than it was when it was measured.
TEST_F(Memory, PlansAgainWhenTimesAreOthers) {
  std::string text = net();
  text.replace(text.find("max_batches=3"), 13, "max_batches=12");
  put(folder / "net.cfg", text);
  ASSERT_EQ(train().code, 0);
  const std::string expected = weights();
  const fs::path home = fs::current_path();
  fs::current_path(folder.path());
  Silent console;
  const train::TrainSettings settings{
      .data_file = "obj.data",
      .cfg_file = "net.cfg",
      .threads = 2,
      .memory = "20M",
      .disk_memory = ".:1G",
      .make_file = [&](Bytes bytes) -> std::shared_ptr<device::Tier> {
        return std::make_shared<device::FaultyTier>(
            std::make_shared<device::FileTier>(
                device::FileTierOptions{.folder = ".", .bytes = bytes}),
            std::vector<device::Fault>{}, [](device::Direction, std::int64_t) { return 0.02; });
      }};
  const auto run = [&](const std::string& memory) -> std::string {
    train::TrainSettings within = settings;
    within.memory = memory;
    try {
      train::train_detector(within, console);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  const std::string refused = run("20M");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(refused, match, std::regex("works is memory=([0-9]+)M")))
      << refused;
  const auto looked_again = [&] {
    return console.notices.find("measured again") != std::string::npos;
  };
  for (int more = 2; more <= 20 && !looked_again(); more += 3)
    run(fmt::format("{}M", std::stoi(match[1]) + more));
  EXPECT_TRUE(looked_again()) << console.notices;
  fs::current_path(home);
  EXPECT_TRUE(weights() == expected);
}

}  // namespace
}  // namespace lantern::cli
