#include <gtest/gtest.h>
#include <omp.h>

#include <filesystem>
#include <thread>

#include "api/classifier_file.hpp"
#include "data/image.hpp"
#include "lantern/net.hpp"

namespace lantern::test {
namespace {

namespace fs = std::filesystem;

const fs::path kWeights = fs::path(LANTERN_TEST_DATA) / "weights";
const std::string kFaceCfg = kWeights / "yoloface-50k" / "yoloface-50k.cfg";
const std::string kFaceWeights = kWeights / "yoloface-50k" / "yoloface-50k.weights";

constexpr int kThreads = 4, kRounds = 8;

struct Pictures {
  std::vector<data::Image> images;
  std::vector<ImageView> views;
  Pictures() {
    for (const char* name : {"dog", "eagle", "giraffe", "horses", "person", "scream"}) {
      images.push_back(
          data::load_image(kWeights / "expected" / "inputs" / (std::string(name) + "_56x56.png")));
    }
    for (const data::Image& image : images) {
      views.push_back({.data = image.pixels.data(), .width = image.w, .height = image.h});
    }
  }
};

bool same(const std::vector<Detection>& a, const std::vector<Detection>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const Detection& x, const Detection& y) {
        return x.confidence == y.confidence && x.box.x == y.box.x && x.box.width == y.box.width;
      });
}

template <typename Body>
void in_threads(Body body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&body, t] { body(t); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, ShareOneNet) {
  const Pictures pictures;
  const Net net = Net::load(kFaceCfg, kFaceWeights, {.batch = 2});
  const DetectOptions options{.threshold = 0.05F};
  const auto want = net.detect(pictures.views, options);
  std::vector<int> wrong(kThreads, 0);
  in_threads([&](int t) {
    for (int round = 0; round < kRounds; ++round) {
      const std::size_t i = static_cast<std::size_t>(t + round) % pictures.views.size();
      // Alone: the other place of the batch is empty, and the result still the same.
      if (!same(net.detect(pictures.views[i], options), want[i]))
        ++wrong[static_cast<std::size_t>(t)];
    }
  });
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

TEST(Threads, HaveNetsOfTheirOwn) {
  const Pictures pictures;
  const TemporaryFolder folder;
  write_classifier(folder.path());
  const DetectOptions options{.threshold = 0.05F};
  const auto want =
      Net::load(kFaceCfg, kFaceWeights, {.threads = 1}).detect(pictures.views, options);
  const std::string cfg = folder.path() / "net.cfg", weights = folder.path() / "net.weights";
  const auto want_class = Net::load(cfg, weights).classify(pictures.views[0], 1);
  std::vector<int> wrong(kThreads, 0);
  in_threads([&](int t) {
    int& mine = wrong[static_cast<std::size_t>(t)];
    const Net detector = Net::load(kFaceCfg, kFaceWeights, {.threads = 1});
    const Net classifier = Net::load(cfg, weights, {.threads = 1 + t % 2});
    for (int round = 0; round < kRounds; ++round) {
      const std::size_t i = static_cast<std::size_t>(t + round) % pictures.views.size();
      if (!same(detector.detect(pictures.views[i], options), want[i])) ++mine;
      const auto found = classifier.classify(pictures.views[0], 1);
      if (found[0].class_id != want_class[0].class_id || found[0].score != want_class[0].score)
        ++mine;
    }
  });
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

TEST(Threads, KeepTheirOwnTeamSize) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(5);
  const Net net = Net::load(kFaceCfg, kFaceWeights, {.threads = 2});
  EXPECT_EQ(omp_get_max_threads(), 5);
  static_cast<void>(net.detect(Pictures().views[0]));
  EXPECT_EQ(omp_get_max_threads(), 5);
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace lantern::test
