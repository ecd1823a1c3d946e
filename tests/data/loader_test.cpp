#include "data/loader.hpp"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <thread>

#include "core/error.hpp"
#include "core/log.hpp"
#include "data/detector_samples.hpp"
#include "test_files.hpp"

namespace lantern::data {
namespace {

using ::testing::HasSubstr;

class LoaderTest : public ::testing::Test {
 protected:
  /// `count` pictures of different sizes with a box or two.
  void make(int count) {
    auto dataset = std::make_shared<Dataset>();
    for (int i = 0; i < count; ++i) {
      const std::string name = fmt::format("img/{:02}.png", i);
      folder_.write_png(name,
                        random_image(40 + 3 * i, 30 + i % 7, 3, static_cast<std::uint64_t>(i)));
      dataset->images.push_back(name);
      dataset->label_files.push_back(fmt::format("img/{:02}.txt", i));
      dataset->labels.push_back({{i % 2, 0.5F, 0.5F, 0.3F, 0.4F, 0}});
      if (i % 3 == 0) dataset->labels.back().push_back({0, 0.3F, 0.6F, 0.2F, 0.3F, 1});
    }
    dataset_ = dataset;
  }
  LoaderSpec spec(int threads, int channels = 3) const {
    AugmentSpec augment{.net_w = 48,
                        .net_h = 32,
                        .channels = channels,
                        .classes = 2,
                        .max_boxes = 8,
                        .jitter = 0.3F,
                        .hue = 0.1F,
                        .saturation = 1.5F,
                        .exposure = 1.5F,
                        .blur = 1,
                        .gaussian_noise = 10,
                        .mix = MixKind::kMosaic};
    LoaderSpec spec{.samples = std::make_shared<DetectorSamples>(dataset_, augment)};
    spec.images_per_iteration = 5;
    spec.seed = 99;
    spec.threads = threads;
    return spec;
  }
  struct Copy {
    std::vector<float> images, truth;
    std::vector<std::string> paths;
    bool operator==(const Copy&) const = default;
  };
  static std::vector<Copy> take(LoaderSpec spec, int iterations) {
    std::vector<Copy> copies;
    TrainingLoader loader(std::move(spec));
    for (int i = 0; i < iterations; ++i) {
      const Batch& batch = loader.next();
      copies.push_back({{batch.images.begin(), batch.images.end()},
                        {batch.truth.begin(), batch.truth.end()},
                        {batch.paths.begin(), batch.paths.end()}});
      loader.release();
    }
    return copies;
  }

  WorkFolder folder_;
  std::shared_ptr<const Dataset> dataset_;
};

TEST_F(LoaderTest, SameBitsForAnyThreadCountAndQueue) {
  make(12);
  const std::vector<Copy> one = take(spec(1), 6);
  EXPECT_EQ(one, take(spec(2), 6));
  LoaderSpec four = spec(4);
  four.queue = 4;
  EXPECT_EQ(one, take(four, 6));
  LoaderSpec other = spec(1);
  other.seed = 100;
  EXPECT_NE(one, take(other, 6));
  EXPECT_NE(one[0], one[1]);
}

TEST_F(LoaderTest, GoesOnInTheMiddle) {
  make(12);
  const std::vector<Copy> whole = take(spec(2), 7);
  LoaderSpec later = spec(3);
  later.first_iteration = 4;
  const std::vector<Copy> rest = take(later, 3);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(rest[i], whole[i + 4]);
}

TEST_F(LoaderTest, EveryImageOnceAPassInANewOrder) {
  make(16);
  LoaderSpec given = spec(2);
  given.images_per_iteration = 4;
  TrainingLoader loader(given);
  std::vector<std::vector<std::int64_t>> passes;
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<std::int64_t> order;
    for (int i = 0; i < 4; ++i) {
      const Batch& batch = loader.next();
      order.insert(order.end(), batch.indices.begin(), batch.indices.end());
    }
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 16U);
    passes.push_back(order);
  }
  EXPECT_NE(passes[0], passes[1]);
  EXPECT_NE(passes[1], passes[2]);
}

TEST(SampleOrder, BatchesAcrossTheEndOfAPass) {
  SampleOrder order(7, 10, Sampling::kPermutation);
  std::map<std::int64_t, int> seen;
  for (std::int64_t position = 0; position < 100; ++position) ++seen[order.index(position)];
  for (const auto& [index, count] : seen) EXPECT_EQ(count, 10) << index;
  // Any access order gives the same.
  SampleOrder again(7, 10, Sampling::kPermutation);
  const std::int64_t late = again.index(95);
  EXPECT_EQ(again.index(3), SampleOrder(7, 10, Sampling::kPermutation).index(3));
  EXPECT_EQ(order.index(95), late);
}

TEST(SampleOrder, PermutationsAreFair) {
  std::map<std::vector<std::int64_t>, int> counts;
  SampleOrder order(1, 3, Sampling::kPermutation);
  for (std::int64_t epoch = 0; epoch < 6000; ++epoch) {
    ++counts[{order.index(3 * epoch), order.index(3 * epoch + 1), order.index(3 * epoch + 2)}];
  }
  EXPECT_EQ(counts.size(), 6U);
  for (const auto& [permutation, count] : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(SampleOrder, ReplacementMissesSome) {
  SampleOrder order(7, 1000, Sampling::kReplacement);
  std::set<std::int64_t> seen;
  for (std::int64_t position = 0; position < 1000; ++position) seen.insert(order.index(position));
  EXPECT_NEAR(static_cast<double>(seen.size()), 632, 50);
}

TEST_F(LoaderTest, AnImageListedTwiceIsUsedTwice) {
  make(4);
  auto dataset = std::make_shared<Dataset>(*dataset_);
  dataset->images.push_back(dataset->images[1]);
  dataset->labels.push_back(dataset->labels[1]);
  dataset->label_files.push_back(dataset->label_files[1]);
  dataset_ = dataset;
  std::map<std::string, int> counts;
  for (const Copy& copy : take(spec(2), 1)) {
    for (const std::string& path : copy.paths) ++counts[path];
  }
  EXPECT_EQ(counts["img/01.png"], 2);
  EXPECT_EQ(counts["img/02.png"], 1);
}

TEST_F(LoaderTest, SizesThatChangeByIteration) {
  make(9);
  LoaderSpec given = spec(3);
  given.max_w = 96;
  given.max_h = 64;
  given.max_images = 6;
  given.shape = [](std::int64_t iteration) {
    const int times = iteration % 2 == 0 ? 1 : 2;
    // 6 images at the small size, 2 at the large one.
    return IterationShape{.net_w = 48 * times,
                          .net_h = 32 * times,
                          .images = times == 1 ? 6 : 2,
                          .first_image = iteration / 2 * 8 + (times == 1 ? 0 : 6)};
  };
  TrainingLoader loader(given);
  const std::int64_t bytes = loader.bytes();
  EXPECT_EQ(bytes, 4 * 2 * 6 * (3 * 96 * 64 + 8 * 6));
  std::vector<std::int64_t> indices;
  for (int i = 0; i < 6; ++i) {
    const Batch& batch = loader.next();
    EXPECT_EQ(batch.iteration, i);
    EXPECT_EQ(batch.net_w, i % 2 == 0 ? 48 : 96);
    EXPECT_EQ(batch.images.size(),
              static_cast<std::size_t>(batch.count * 3 * batch.net_w * batch.net_h));
    indices.insert(indices.end(), batch.indices.begin(), batch.indices.end());
    for (const float value : batch.images) ASSERT_TRUE(value >= 0 && value <= 1);
  }
  EXPECT_EQ(loader.bytes(), bytes);
  EXPECT_EQ(std::set<std::int64_t>(indices.begin(), indices.begin() + 9).size(), 9U);
}

TEST_F(LoaderTest, UnreadableImagesAreReplacedAndCounted) {
  make(10);
  folder_.write("img/03.png", "GIF89a not a picture");
  folder_.write("img/07.png", "");
  LoaderSpec given = spec(1);
  given.bad_data_limit = 0.25;
  const std::vector<Copy> one = take(given, 8);
  given.threads = 4;
  EXPECT_EQ(one, take(given, 8));
  for (const Copy& copy : one) {
    for (const std::string& path : copy.paths)
      EXPECT_TRUE(path != "img/03.png" && path != "img/07.png");
  }
  TrainingLoader loader(given);
  for (int i = 0; i < 8; ++i) loader.next();
  EXPECT_EQ(loader.stats().bad_images, 2);
}

TEST_F(LoaderTest, TooManyUnreadableImagesAreOneClearError) {
  make(10);
  folder_.write("img/03.png", "<html></html>");
  try {
    take(spec(2), 10);  // the default limit is 1 %
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidData);
    EXPECT_THAT(error.what(), HasSubstr("1 of 10 images"));
    EXPECT_THAT(error.what(), HasSubstr("bad_data_limit=1 (percent"));
    EXPECT_THAT(error.what(), HasSubstr("img/03.png"));
  }
  for (int i = 0; i < 10; ++i) folder_.write(fmt::format("img/{:02}.png", i), "");
  LoaderSpec all = spec(2);
  all.bad_data_limit = 1;
  try {
    take(all, 1);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("none of the 10 images"));
  }
}

TEST_F(LoaderTest, ThreadsDoNotSearchForeverWhenEveryFileIsBad) {
  make(3);
  for (int i = 0; i < 3; ++i) folder_.write(fmt::format("img/{:02}.png", i), "");
  log::set_level(log::Level::kError);
  for (int round = 0; round < 200; ++round) {
    LoaderSpec given = spec(4);
    given.bad_data_limit = 1;
    EXPECT_THROW(take(given, 1), Error);
  }
  log::set_level(log::Level::kInfo);
}

TEST_F(LoaderTest, OneChannelReadsColourAndGreyFiles) {
  make(2);
  folder_.write_png("img/grey.png", random_image(40, 40, 1, 77));
  auto dataset = std::make_shared<Dataset>(*dataset_);
  dataset->images.push_back("img/grey.png");
  dataset->labels.emplace_back();
  dataset->label_files.push_back("img/grey.txt");
  dataset_ = dataset;
  const LoaderSpec given = spec(2, 1);
  for (const Copy& copy : take(given, 3)) EXPECT_EQ(copy.images.size(), 5U * 48 * 32);
}

TEST_F(LoaderTest, EndsAtTheLastIterationAndCanBeDroppedEarly) {
  make(6);
  LoaderSpec given = spec(2);
  given.last_iteration = 2;
  EXPECT_EQ(take(given, 2).size(), 2U);
  { TrainingLoader unread(spec(4)); }
  TrainingLoader held(spec(2));
  EXPECT_EQ(held.next().iteration, 0);
}

TEST_F(LoaderTest, SleepsWhileTheQueueIsFull) {
  make(6);
  LoaderSpec given = spec(2);
  given.queue = 2;
  TrainingLoader loader(given);
  loader.next();
  for (int i = 0; i < 500 && loader.stats().images < 10; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(loader.stats().images, 10);  // two iterations of 5, not one more
}

TEST_F(LoaderTest, EvalKeepsTheOrderAndReportsBadFiles) {
  make(7);
  folder_.write("img/04.png", "GIF89a");
  for (const std::int64_t batch_size : {1, 3}) {
    EvalLoader loader({.images = dataset_->images,
                       .eval = {.net_w = 32, .net_h = 32, .letter_box = true},
                       .batch = batch_size,
                       .threads = 3});
    std::int64_t expected = 0;
    while (const EvalBatch* batch = loader.next()) {
      for (std::size_t i = 0; i < batch->items.size(); ++i) {
        const EvalItem& item = batch->items[i];
        ASSERT_EQ(item.index, expected++);
        if (item.index == 4) {
          EXPECT_THAT(item.error, HasSubstr("GIF is not supported"));
          continue;
        }
        EXPECT_EQ(item.error, "");
        EXPECT_EQ(item.image_w, 40 + 3 * item.index);
        const Planes want =
            prepare_eval_image(load_image(dataset_->images[static_cast<std::size_t>(item.index)]),
                               {.net_w = 32, .net_h = 32, .letter_box = true});
        const auto got = batch->images.subspan(i * want.data.size(), want.data.size());
        EXPECT_TRUE(std::equal(got.begin(), got.end(), want.data.begin()));
      }
    }
    EXPECT_EQ(expected, 7);
    EXPECT_EQ(loader.next(), nullptr);
    EXPECT_EQ(loader.stats().bad_images, 1);
  }
}

}  // namespace
}  // namespace lantern::data
