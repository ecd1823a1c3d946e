#include "data/class_augment.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

#include "data/class_samples.hpp"
#include "data/loader.hpp"
#include "test_files.hpp"

namespace lantern::data {
namespace {

// One output value of a window by the formulas of the training reference (5.2), in double: from
// the pixel back to the source, four neighbours, 0 outside.
double by_hand(const Image& image, const ClassAugment& augment, const ClassDraws& draws, int x,
               int y, int c) {
  const double w = image.w, h = image.h, a = draws.aspect;
  const int m = h < w * a ? image.h : static_cast<int>(w * a);
  const double s = static_cast<double>(draws.length) / m;
  const double size = std::max(augment.net_w, augment.net_h);
  const double most_x = std::max(0.0, (w * s / a - size) / 2);
  const double most_y = std::max(0.0, (h * s - size) / 2);
  const double dx = -most_x + 2 * most_x * draws.shift_x;
  const double dy = -most_y + 2 * most_y * draws.shift_y;
  const double u = (x - size / 2) / s * a + dx / s * a;
  const double v = (y - size / 2) / s + dy / s;
  const double sx = std::cos(draws.radians) * u - std::sin(draws.radians) * v + w / 2;
  const double sy = std::sin(draws.radians) * u + std::cos(draws.radians) * v + h / 2;
  const auto at = [&](int px, int py) {
    if (px < 0 || py < 0 || px >= image.w || py >= image.h) return 0.0;
    return image.row(py)[px * image.c + c] / 255.0;
  };
  const int ix = static_cast<int>(std::floor(sx)), iy = static_cast<int>(std::floor(sy));
  const double fx = sx - ix, fy = sy - iy;
  return (1 - fx) * (1 - fy) * at(ix, iy) + fx * (1 - fy) * at(ix + 1, iy) +
         (1 - fx) * fy * at(ix, iy + 1) + fx * fy * at(ix + 1, iy + 1);
}

TEST(ClassWindow, IsTheReferencesArithmetic) {
  ClassAugment augment{.net_w = 24, .net_h = 24, .min_crop = 12, .max_crop = 60};
  augment.aspect = 1.7F;
  augment.angle = 40;
  int black = 0, tried = 0;
  for (int seed = 0; seed < 60; ++seed) {
    Rng rng(static_cast<std::uint64_t>(seed), "sizes");
    const int channels = seed % 4 == 0 ? 1 : 3;
    const Image image = random_image(static_cast<int>(rng.uniform_int(1, 70)),
                                     static_cast<int>(rng.uniform_int(1, 70)), channels,
                                     static_cast<std::uint64_t>(seed));
    augment.net_h = seed % 3 == 0 ? 40 : 24;
    const ClassDraws draws = draw_class_source(augment, {7, seed, 3}, 0);
    if (image.w * draws.aspect < 1) continue;  // the reference divides by zero
    const ClassWindow window = class_window(augment, draws, image.w, image.h);
    Planes planes;
    sample_window(image, window, planes);
    ASSERT_EQ(planes.w, std::max(augment.net_w, augment.net_h));
    ASSERT_EQ(planes.c, channels);
    for (int c = 0; c < channels; ++c) {
      for (int y = 0; y < planes.h; ++y) {
        for (int x = 0; x < planes.w; ++x) {
          const float value =
              planes.data[static_cast<std::size_t>((c * planes.h + y) * planes.w + x)];
          ASSERT_NEAR(value, by_hand(image, augment, draws, x, y, c), 2e-4)
              << "seed " << seed << " at " << x << ", " << y;
          black += value == 0;
          ++tried;
        }
      }
    }
  }
  EXPECT_GT(black, tried / 100) << "windows reach outside";
  EXPECT_LT(black, tried / 2);
}

TEST(ClassWindow, WithoutDrawsIsTheMiddleOfThePicture) {
  // The shorter side scaled to the net's, nothing turned: rows are source rows.
  const ClassAugment augment{.net_w = 32, .net_h = 32, .min_crop = 32, .max_crop = 32};
  const Image image = random_image(48, 32, 3, 5);
  ClassDraws draws = draw_class_source(augment, {1, 2, 3}, 0);
  EXPECT_EQ(draws.length, 32);
  EXPECT_EQ(draws.aspect, 1);
  EXPECT_EQ(draws.radians, 0);
  draws.shift_x = 0.5F;
  Planes planes;
  sample_window(image, class_window(augment, draws, 48, 32), planes);
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) {
      ASSERT_NEAR(planes.data[static_cast<std::size_t>(y * 32 + x)],
                  static_cast<float>(image.row(y)[3 * (x + 8)]) / 255, 1e-6);
    }
  }
}

TEST(ClassDraws, StayInTheirRangesAndDiffer) {
  ClassAugment augment{.min_crop = 100, .max_crop = 130};
  augment.aspect = 1.5F;
  augment.angle = 10;
  augment.hue = 0.1F;
  augment.saturation = 2;
  augment.exposure = 3;
  std::map<int, int> lengths;
  int flips = 0;
  float low = 9, high = 0, left = 9, right = -9;
  for (int i = 0; i < 2000; ++i) {
    const ClassDraws draws = draw_class_source(augment, {1, i, 0}, 0);
    ++lengths[draws.length];
    flips += draws.flip ? 1 : 0;
    low = std::min(low, draws.aspect);
    high = std::max(high, draws.aspect);
    left = std::min(left, draws.radians);
    right = std::max(right, draws.radians);
    ASSERT_LE(std::abs(draws.hue), 0.1F);
    ASSERT_TRUE(draws.saturation >= 0.5F && draws.saturation <= 2);
    ASSERT_TRUE(draws.exposure >= 1 / 3.001F && draws.exposure <= 3);
    ASSERT_TRUE(draws.shift_x >= 0 && draws.shift_x < 1);
  }
  EXPECT_EQ(lengths.begin()->first, 100);
  EXPECT_EQ(lengths.rbegin()->first, 130);
  EXPECT_EQ(lengths.size(), 31U);
  EXPECT_NEAR(flips, 1000, 120);
  EXPECT_NEAR(low, 1 / 1.5F, 0.01);
  EXPECT_NEAR(high, 1.5F, 0.01);
  EXPECT_NEAR(right, 10 * std::numbers::pi / 180, 0.002);
  EXPECT_NEAR(left, -10 * std::numbers::pi / 180, 0.002);
  augment.flip = false;
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(draw_class_source(augment, {1, i, 0}, 0).flip);
}

TEST(ClassMix, CombinesTheKeys) {
  EXPECT_EQ(class_mix(0, false, false), ClassMix::kNone);
  EXPECT_EQ(class_mix(1, false, false), ClassMix::kMixup);
  EXPECT_EQ(class_mix(1, true, false), ClassMix::kCutmix);
  EXPECT_EQ(class_mix(1, false, true), ClassMix::kMosaic);
  EXPECT_EQ(class_mix(0, true, true), ClassMix::kCutmixOrMosaic);
}

// Pictures of one colour each, so that every pixel tells its source.
class ClassMixing : public ::testing::Test {
 protected:
  static constexpr int kW = 40, kH = 30;
  ClassMixing() {
    for (int i = 0; i < 4; ++i) {
      images_.push_back({.w = 50, .h = 40, .c = 1, .pixels = {}});
      images_.back().pixels.assign(2000, static_cast<std::uint8_t>(51 * (i + 1)));
      set_.images.push_back("x");
      set_.classes.push_back(i);
    }
    set_.counts.assign(5, 1);
    // Not enlarged, so no row has a black neighbour.
    augment_ = {.net_w = kW, .net_h = kH, .channels = 1, .min_crop = 40, .max_crop = 40};
  }
  struct Sample {
    int sources = 0;
    std::vector<float> pixels, truth;
  };
  Sample make(const SampleKey& key, float smoothing = 0) {
    const ClassSamples samples(set_, 5, smoothing, augment_);
    Sample sample{.sources = samples.sources(key, samples.shape()), .pixels = {}, .truth = {}};
    sample.pixels.resize(kW * kH);
    sample.truth.resize(5);
    std::vector<SourceImage> sources;
    for (int s = 0; s < sample.sources; ++s)
      sources.push_back({&images_[static_cast<std::size_t>(s)], s});
    const auto scratch = samples.new_scratch();
    samples.make(key, samples.shape(), sources, *scratch, sample.pixels, sample.truth);
    return sample;
  }
  // Share of the pixels that show source s.
  static double share(const Sample& sample, int s) {
    const float value = static_cast<float>(51 * (s + 1)) / 255;
    return static_cast<double>(std::ranges::count_if(
               sample.pixels, [&](float p) { return std::abs(p - value) < 1e-3; })) /
           (kW * kH);
  }
  std::vector<Image> images_;
  ClassSet set_;
  ClassAugment augment_;
};

// reference/training.md 5.1: every class that fits 1 - eps, the others eps / (k - 1).
TEST_F(ClassMixing, EveryClassOfAPictureIsTrue) {
  set_.further[0] = {3, 4};
  const Sample plain = make({.seed = 1});
  EXPECT_EQ(plain.truth, (std::vector<float>{1, 0, 0, 1, 1}));
  const Sample smooth = make({.seed = 1}, 0.2F);
  const std::vector<float> want{0.8F, 0.05F, 0.05F, 0.8F, 0.8F};
  for (std::size_t c = 0; c < want.size(); ++c) EXPECT_NEAR(smooth.truth[c], want[c], 1e-6) << c;
}

TEST_F(ClassMixing, LabelsAreWeightedByWhatIsShown) {
  for (const ClassMix mix : {ClassMix::kCutmix, ClassMix::kMosaic, ClassMix::kCutmixOrMosaic}) {
    augment_.mix = mix;
    std::map<int, int> counts;
    for (int i = 0; i < 200; ++i) {
      const Sample sample = make({1, i, 0});
      ++counts[sample.sources];
      EXPECT_NEAR(std::accumulate(sample.truth.begin(), sample.truth.end(), 0.0), 1, 1e-5);
      for (int s = 0; s < 4; ++s)
        EXPECT_NEAR(sample.truth[static_cast<std::size_t>(s)], share(sample, s), 1e-5) << i;
      if (sample.sources == 1) continue;
      EXPECT_LE(sample.truth[0], 0.92F);
    }
    EXPECT_NEAR(counts[1], 100, 30) << "a coin for each picture";
    EXPECT_EQ(counts[2] > 0, mix != ClassMix::kMosaic);
    EXPECT_EQ(counts[4] > 0, mix != ClassMix::kCutmix);
  }
}

TEST_F(ClassMixing, QuadrantsOfAMosaicLieInReadingOrder) {
  augment_.mix = ClassMix::kMosaic;
  SampleKey key{1, 0, 0};
  while (make(key).sources != 4) ++key.iteration;
  const Sample sample = make(key);
  const auto corner = [&](int x, int y) {
    return sample.pixels[static_cast<std::size_t>(y * kW + x)];
  };
  EXPECT_NEAR(corner(0, 0), 51 / 255.0, 1e-5);
  EXPECT_NEAR(corner(kW - 1, 0), 102 / 255.0, 1e-5);
  EXPECT_NEAR(corner(0, kH - 1), 153 / 255.0, 1e-5);
  EXPECT_NEAR(corner(kW - 1, kH - 1), 204 / 255.0, 1e-5);
}

TEST_F(ClassMixing, MixupIsTheMean) {
  augment_.mix = ClassMix::kMixup;
  int mixed = 0;
  for (int i = 0; i < 40; ++i) {
    const Sample sample = make({1, i, 0});
    if (sample.sources == 1) continue;
    ++mixed;
    for (const float value : sample.pixels) ASSERT_NEAR(value, (51 + 102) / 2.0 / 255, 1e-5);
    EXPECT_FLOAT_EQ(sample.truth[0], 0.5F);
    EXPECT_FLOAT_EQ(sample.truth[1], 0.5F);
  }
  EXPECT_GT(mixed, 5);
}

TEST_F(ClassMixing, SmoothingSharesWhatItTakes) {
  const Sample sample = make({1, 0, 0}, 0.2F);
  EXPECT_FLOAT_EQ(sample.truth[0], 0.8F);
  for (std::size_t c = 1; c < 5; ++c) EXPECT_FLOAT_EQ(sample.truth[c], 0.05F);
}

TEST_F(ClassMixing, BlurTouchesAQuarterOfThePictures) {
  images_[0] = random_image(50, 40, 1, 3);
  const auto roughness = [](const Sample& sample) {
    double sum = 0;
    for (std::size_t i = 1; i < sample.pixels.size(); ++i)
      sum += std::abs(sample.pixels[i] - sample.pixels[i - 1]);
    return sum;
  };
  for (const int size : {1, 4}) {  // 15, and the next odd one
    int blurred = 0;
    for (int i = 0; i < 200; ++i) {
      augment_.blur = 0;
      const double sharp = roughness(make({1, i, 0}));
      augment_.blur = size;
      const double now = roughness(make({1, i, 0}));
      EXPECT_TRUE(now == sharp || now < 0.7 * sharp) << now << " of " << sharp;
      blurred += now < sharp;
    }
    EXPECT_NEAR(blurred, 50, 25);
  }
}

TEST(ClassLoader, SameBitsForAnyThreadCount) {
  const WorkFolder folder;
  ClassSet set{.list = "list", .images = {}, .classes = {}};
  for (int i = 0; i < 9; ++i) {
    const std::string name = fmt::format("{}.png", i);
    folder.write_png(name, random_image(20 + 5 * i, 30 + i % 4, 3, static_cast<std::uint64_t>(i)));
    set.images.push_back(name);
    set.classes.push_back(i % 3);
  }
  ClassAugment augment{.net_w = 32, .net_h = 24, .min_crop = 24, .max_crop = 48};
  augment.angle = 7;
  augment.aspect = 1.3F;
  augment.hue = 0.1F;
  augment.exposure = 1.5F;
  augment.mix = ClassMix::kCutmixOrMosaic;
  augment.blur = 5;
  const auto samples = std::make_shared<ClassSamples>(set, 3, 0.1F, augment);
  const auto take = [&](int threads, int queue) {
    TrainingLoader loader({.samples = samples,
                           .images_per_iteration = 7,
                           .seed = 4,
                           .threads = threads,
                           .queue = queue});
    std::vector<float> all;
    for (int i = 0; i < 6; ++i) {
      const Batch& batch = loader.next();
      EXPECT_EQ(batch.truth.size(), 21U);
      all.insert(all.end(), batch.images.begin(), batch.images.end());
      all.insert(all.end(), batch.truth.begin(), batch.truth.end());
      loader.release();
    }
    return all;
  };
  const std::vector<float> one = take(1, 2);
  EXPECT_EQ(one, take(2, 2));
  EXPECT_EQ(one, take(4, 3));
  for (const float value : one) ASSERT_TRUE(value >= 0 && value <= 1) << value;
}

}  // namespace
}  // namespace lantern::data
