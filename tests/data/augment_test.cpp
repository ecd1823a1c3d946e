#include "data/augment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "test_files.hpp"

namespace lantern::data {
namespace {

struct Sample {
  std::vector<float> pixels;
  std::vector<TruthBox> boxes;
  SampleReport report;
};

Sample make_sample(const AugmentSpec& spec, const SampleKey& key, const SamplePlan& plan,
                   const std::vector<SampleSource>& sources) {
  Sample sample;
  AugmentScratch scratch;
  sample.pixels.assign(static_cast<std::size_t>(spec.channels * spec.net_w * spec.net_h), -1.0F);
  std::vector<float> truth(static_cast<std::size_t>(6 * spec.max_boxes), -1.0F);
  sample.report = prepare_training_sample(spec, key, plan, sources, scratch, sample.pixels, truth);
  for (int i = 0; i < spec.max_boxes && truth[static_cast<std::size_t>(6 * i)] != 0; ++i) {
    const float* row = truth.data() + 6 * i;
    sample.boxes.push_back({row[0], row[1], row[2], row[3], row[4], row[5]});
  }
  EXPECT_EQ(sample.report.boxes, static_cast<int>(sample.boxes.size()));
  return sample;
}

Sample make_sample(const AugmentSpec& spec, const SampleKey& key, const SampleSource& source) {
  return make_sample(spec, key, SamplePlan{}, {source});
}

struct Edges {
  double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9;
};

/// Extent of the pixels that satisfy `is_inside(r, g, b)`, in pixels.
template <typename Inside>
Edges extent(const AugmentSpec& spec, const std::vector<float>& pixels, Inside is_inside) {
  Edges edges;
  const std::size_t plane =
      static_cast<std::size_t>(spec.net_w) * static_cast<std::size_t>(spec.net_h);
  for (int y = 0; y < spec.net_h; ++y) {
    for (int x = 0; x < spec.net_w; ++x) {
      const auto i = static_cast<std::size_t>(y * spec.net_w + x);
      if (!is_inside(pixels[i], pixels[plane + i], pixels[2 * plane + i])) continue;
      edges.left = std::min<double>(edges.left, x);
      edges.right = std::max<double>(edges.right, x + 1);
      edges.top = std::min<double>(edges.top, y);
      edges.bottom = std::max<double>(edges.bottom, y + 1);
    }
  }
  return edges;
}

/// Black picture with one rectangle of a colour, and its label.
struct RectanglePicture {
  Image image;
  std::vector<Label> labels;
};
RectanglePicture rectangle_picture(int w, int h, Rng& rng, std::array<int, 3> colour,
                                   int class_id) {
  RectanglePicture picture;
  picture.image = {.w = w,
                   .h = h,
                   .c = 3,
                   .pixels = std::vector<std::uint8_t>(static_cast<std::size_t>(3 * w * h), 0)};
  const auto bw = static_cast<int>(rng.uniform_int(w / 8, w / 2)),
             bh = static_cast<int>(rng.uniform_int(h / 8, h / 2));
  const auto x0 = static_cast<int>(rng.uniform_int(0, w - bw)),
             y0 = static_cast<int>(rng.uniform_int(0, h - bh));
  for (int y = y0; y < y0 + bh; ++y) {
    for (int x = x0; x < x0 + bw; ++x) {
      for (std::size_t c = 0; c < 3; ++c)
        picture.image.row(y)[static_cast<std::size_t>(3 * x) + c] =
            static_cast<std::uint8_t>(colour[c]);
    }
  }
  picture.labels.push_back(
      {class_id, (static_cast<float>(x0) + static_cast<float>(bw) / 2) / static_cast<float>(w),
       (static_cast<float>(y0) + static_cast<float>(bh) / 2) / static_cast<float>(h),
       static_cast<float>(bw) / static_cast<float>(w),
       static_cast<float>(bh) / static_cast<float>(h), 0});
  return picture;
}

void expect_box_around(const TruthBox& box, const Edges& edges, const AugmentSpec& spec,
                       double tolerance) {
  EXPECT_NEAR((box.x - box.w / 2) * static_cast<float>(spec.net_w), edges.left, tolerance);
  EXPECT_NEAR((box.x + box.w / 2) * static_cast<float>(spec.net_w), edges.right, tolerance);
  EXPECT_NEAR((box.y - box.h / 2) * static_cast<float>(spec.net_h), edges.top, tolerance);
  EXPECT_NEAR((box.y + box.h / 2) * static_cast<float>(spec.net_h), edges.bottom, tolerance);
}

TEST(Augment, BoxFollowsADrawnRectangle) {
  int with_box = 0;
  for (std::uint32_t i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    Rng rng(3, "sizes", i);
    const auto w = static_cast<int>(rng.uniform_int(60, 300)),
               h = static_cast<int>(rng.uniform_int(60, 300));
    const RectanglePicture picture = rectangle_picture(w, h, rng, {255, 0, 0}, 1);
    AugmentSpec spec{.net_w = 96 + 32 * static_cast<int>(i % 3), .net_h = 128, .classes = 2};
    spec.jitter = i % 2 == 0 ? 0.3F : 0.0F;
    spec.resize = i % 3 == 0 ? 1.5F : 1.0F;
    spec.letter_box = i % 5 == 0;
    const Sample sample = make_sample(spec, {.seed = 1, .iteration = 7, .slot = i},
                                      {&picture.image, picture.labels, "a.txt"});
    const Edges edges = extent(spec, sample.pixels, [](float r, float g, float b) {
      return r >= 0.5F && g < 0.4F && b < 0.4F;
    });
    if (edges.right < 0 || sample.boxes.empty()) {
      EXPECT_LE(std::min(edges.right - edges.left, edges.bottom - edges.top), 2.0);
      EXPECT_TRUE(sample.boxes.empty() ||
                  std::min(sample.boxes[0].w * 96, sample.boxes[0].h * 96) < 2);
      continue;
    }
    ++with_box;
    ASSERT_EQ(sample.boxes.size(), 1U);
    EXPECT_EQ(sample.boxes[0].class_id, 1);
    expect_box_around(sample.boxes[0], edges, spec, 1.0);
  }
  EXPECT_GT(with_box, 250);
}

TEST(Augment, BoxesFollowTheRectanglesOfAMosaic) {
  int boxes = 0;
  for (std::uint32_t i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    Rng rng(4, "sizes", i);
    const std::array<int, 3> colours[4] = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {255, 0, 255}};
    std::vector<RectanglePicture> pictures;
    for (int s = 0; s < 4; ++s) {
      const auto w = static_cast<int>(rng.uniform_int(80, 200)),
                 h = static_cast<int>(rng.uniform_int(80, 200));
      pictures.push_back(rectangle_picture(w, h, rng, colours[s], s));
    }
    std::vector<SampleSource> sources;
    for (const RectanglePicture& picture : pictures)
      sources.push_back({&picture.image, picture.labels, "a.txt"});
    AugmentSpec spec{
        .net_w = 160, .net_h = 128, .classes = 4, .mix = MixKind::kMosaic, .mosaic_bound = true};
    spec.jitter = 0.3F;
    spec.resize = i % 2 == 0 ? 1.5F : 1.0F;
    spec.letter_box = i % 3 == 0;
    const SampleKey key{.seed = 2, .iteration = 1, .slot = i};
    const SamplePlan plan = plan_sample(spec, key);
    if (plan.sources == 1) continue;
    EXPECT_GE(plan.cut_x, 32);
    EXPECT_LE(plan.cut_x, 128);
    const Sample sample = make_sample(spec, key, plan, sources);
    for (const TruthBox& box : sample.boxes) {
      ++boxes;
      const auto want = colours[static_cast<std::size_t>(box.class_id)];
      const Edges edges = extent(spec, sample.pixels, [&](float r, float g, float b) {
        const float v[3] = {r, g, b};
        bool same = true;
        for (std::size_t c = 0; c < 3; ++c)
          same = same && (want[c] == 255 ? v[c] >= 0.5F : v[c] < 0.4F);
        return same;
      });
      // One pixel more than the other test: the edges are whole pixels, truncated.
      expect_box_around(box, edges, spec, 2.0);
    }
  }
  EXPECT_GT(boxes, 200);
}

TEST(Augment, MosaicQuadrantsComeFromTheirSources) {
  // Constant pictures without jitter: each quadrant has its source's level.
  std::vector<Image> images;
  std::vector<SampleSource> sources;
  for (int s = 0; s < 4; ++s) {
    images.push_back(
        {.w = 40,
         .h = 30,
         .c = 3,
         .pixels = std::vector<std::uint8_t>(3600, static_cast<std::uint8_t>(50 * (s + 1)))});
  }
  for (const Image& image : images) sources.push_back({&image, {}, ""});
  AugmentSpec spec{.net_w = 64, .net_h = 48, .mix = MixKind::kMosaic};
  const SamplePlan plan{.mix = MixKind::kMosaic, .sources = 4, .cut_x = 20, .cut_y = 30};
  const Sample sample = make_sample(spec, {.seed = 1}, plan, sources);
  for (int y = 0; y < 48; ++y) {
    for (int x = 0; x < 64; ++x) {
      const int quadrant = (y < 30 ? 0 : 2) + (x < 20 ? 0 : 1);
      ASSERT_FLOAT_EQ(sample.pixels[static_cast<std::size_t>(y * 64 + x)],
                      static_cast<float>(50 * (quadrant + 1)) / 255);
    }
  }
}

TEST(Augment, MosaicSkipsTheBorderOfMeanColour) {
  // Upper half red, lower half blue: the mean, and only the mean, has as much of the one as of the
  // other.
  Image image{.w = 100, .h = 100, .c = 3, .pixels = std::vector<std::uint8_t>(30000, 0)};
  for (std::size_t i = 0; i < 10000; ++i) image.pixels[3 * i + (i < 5000 ? 0 : 2)] = 255;
  const std::vector<SampleSource> sources(4, SampleSource{.image = &image});
  AugmentSpec spec{.net_w = 120, .net_h = 100, .jitter = 0.3F, .mix = MixKind::kMosaic};
  const SamplePlan plan{.mix = MixKind::kMosaic, .sources = 4, .cut_x = 60, .cut_y = 50};
  int checked = 0;
  for (std::uint32_t slot = 0; slot < 100; ++slot) {
    const SampleKey key{.seed = 6, .iteration = 0, .slot = slot};
    const Sample sample = make_sample(spec, key, plan, sources);
    for (const int quadrant : {1, 3}) {
      const SourceDraws draws = draw_source(spec, key, quadrant);
      const CropGeometry crop = crop_geometry(spec, draws, 100, 100, quadrant);
      // Only with a border at the inner side that the shift covers whole (it is a fraction of the
      // source's width).
      if ((draws.flip ? crop.right : crop.left) >= -3 || crop.w < 100) continue;
      ++checked;
      double contrast = 0;
      for (int y = quadrant == 1 ? 0 : 50; y < (quadrant == 1 ? 50 : 100); ++y) {
        const auto i = static_cast<std::size_t>(y * 120 + 61);
        contrast =
            std::max<double>(contrast, std::abs(sample.pixels[i] - sample.pixels[24000 + i]));
      }
      EXPECT_GT(contrast, 0.5) << slot << " " << quadrant;
    }
  }
  EXPECT_GT(checked, 20);
}

TEST(Augment, MixupIsTheMeanWithBothBoxes) {
  const Image a{.w = 8, .h = 8, .c = 3, .pixels = std::vector<std::uint8_t>(192, 100)};
  const Image b{.w = 8, .h = 8, .c = 3, .pixels = std::vector<std::uint8_t>(192, 201)};
  const std::vector<Label> one = {{0, 0.5F, 0.5F, 0.5F, 0.5F, 0}};
  const std::vector<Label> two = {{1, 0.5F, 0.5F, 0.5F, 0.5F, 0}, {1, 0.4F, 0.4F, 0.5F, 0.5F, 1}};
  AugmentSpec spec{
      .net_w = 16, .net_h = 16, .classes = 2, .max_boxes = 2, .jitter = 0, .mix = MixKind::kMixup};
  const Sample sample = make_sample(spec, {.seed = 1}, {.mix = MixKind::kMixup, .sources = 2},
                                    {{&a, one, "a"}, {&b, two, "b"}});
  EXPECT_FLOAT_EQ(sample.pixels[17], 150.5F / 255);
  ASSERT_EQ(sample.boxes.size(), 2U);
  EXPECT_EQ(sample.boxes[0].class_id, 0);
  EXPECT_EQ(sample.boxes[1].class_id, 1);
  EXPECT_EQ(sample.report.truncated, 1);
  EXPECT_EQ(sample.boxes[0].track, track_id("a", 0));
}

TEST(Augment, MixCoinIsTossedForEachPicture) {
  const AugmentSpec spec{.mix = MixKind::kMosaic};
  int mixed = 0, changes = 0;
  bool before = false;
  for (std::uint32_t slot = 0; slot < 2000; ++slot) {
    const bool is_mixed = plan_sample(spec, {.seed = 5, .iteration = 3, .slot = slot}).sources == 4;
    mixed += is_mixed ? 1 : 0;
    changes += is_mixed != before ? 1 : 0;
    before = is_mixed;
  }
  EXPECT_NEAR(mixed, 1000, 100);
  EXPECT_NEAR(changes, 1000, 100);
}

TEST(Augment, PlainSettingsGiveTheHalfPixelResize) {
  const Image image = random_image(32, 16, 3, 9);
  AugmentSpec spec{.net_w = 32, .net_h = 16, .jitter = 0, .flip = false};
  const Sample sample = make_sample(spec, {.seed = 1}, {&image, {}, ""});
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < 512; ++i) {
      ASSERT_EQ(sample.pixels[static_cast<std::size_t>(c * 512 + i)],
                static_cast<float>(image.pixels[static_cast<std::size_t>(3 * i + c)]) / 255.0F);
    }
  }
}

TEST(Augment, SameKeySameBitsOtherKeyOtherBits) {
  const Image image = random_image(80, 60, 3, 10);
  const std::vector<Label> labels = {{0, 0.5F, 0.5F, 0.3F, 0.3F, 0},
                                     {0, 0.3F, 0.3F, 0.2F, 0.2F, 1}};
  AugmentSpec spec{.net_w = 64,
                   .net_h = 64,
                   .classes = 1,
                   .jitter = 0.3F,
                   .hue = 0.1F,
                   .saturation = 1.5F,
                   .exposure = 1.5F};
  spec.gaussian_noise = 20;
  spec.blur = 1;
  const SampleSource source{&image, labels, "a"};
  const SampleKey key{.seed = 11, .iteration = 4, .slot = 2};
  const Sample first = make_sample(spec, key, source);
  EXPECT_EQ(first.pixels, make_sample(spec, key, source).pixels);
  for (const SampleKey& other : {SampleKey{12, 4, 2}, SampleKey{11, 5, 2}, SampleKey{11, 4, 3}}) {
    EXPECT_NE(first.pixels, make_sample(spec, other, source).pixels);
  }
}

TEST(Augment, GreyPictureAndTheSamePictureInColourAgree) {
  const Image grey = random_image(40, 30, 1, 12);
  Image colour{.w = 40, .h = 30, .c = 3, .pixels = {}};
  for (const std::uint8_t value : grey.pixels) colour.pixels.insert(colour.pixels.end(), 3, value);
  AugmentSpec spec{.net_w = 32, .net_h = 32, .channels = 1, .jitter = 0.2F, .exposure = 1.5F};
  const Sample from_grey = make_sample(spec, {.seed = 3}, {&grey, {}, ""});
  const Image luminance = to_grey(colour);
  EXPECT_EQ(from_grey.pixels, make_sample(spec, {.seed = 3}, {&luminance, {}, ""}).pixels);
  // Hue and saturation have no meaning for one channel.
  spec.hue = 0.3F;
  spec.saturation = 2;
  EXPECT_EQ(from_grey.pixels, make_sample(spec, {.seed = 3}, {&grey, {}, ""}).pixels);
}

TEST(Truth, DropsWhatIsSmallInvalidOrTooMuch) {
  const Image image = random_image(64, 64, 3, 13);
  std::vector<Label> labels = {{5, 0.5F, 0.5F, 0.3F, 0.3F, 0},    // class out of range
                               {0, 0.5F, 0.5F, 0.001F, 0.3F, 1},  // below one network pixel
                               {-1, 0.5F, 0.5F, 0.3F, 0.3F, 2},
                               {0, NAN, 0.5F, 0.3F, 0.3F, 3}};
  AugmentSpec spec{.net_w = 64, .net_h = 64, .classes = 2, .max_boxes = 3, .jitter = 0};
  EXPECT_TRUE(make_sample(spec, {.seed = 1}, {&image, labels, ""}).boxes.empty());
  for (int i = 0; i < 5; ++i)
    labels.push_back({1, 0.5F, 0.5F, 0.1F + 0.1F * static_cast<float>(i), 0.2F, 4 + i});
  const Sample sample = make_sample(spec, {.seed = 1}, {&image, labels, ""});
  EXPECT_EQ(sample.boxes.size(), 3U);  // bad ones take no place
  EXPECT_EQ(sample.report.truncated, 2);
}

TEST(Truth, SticksOutIsClippedToThePicture) {
  const Image image = random_image(64, 64, 3, 13);
  const std::vector<Label> labels = {{0, 0.95F, 0.5F, 0.3F, 0.2F, 0}};
  AugmentSpec spec{.net_w = 64, .net_h = 64, .classes = 1, .jitter = 0, .flip = false};
  const Sample sample = make_sample(spec, {.seed = 1}, {&image, labels, ""});
  ASSERT_EQ(sample.boxes.size(), 1U);
  EXPECT_NEAR(sample.boxes[0].x, 0.9, 1e-6);
  EXPECT_NEAR(sample.boxes[0].w, 0.2, 1e-6);
}

TEST(CropGeometry, ByHand) {
  AugmentSpec spec{.net_w = 100, .net_h = 100, .jitter = 0, .resize = 1.5F};
  SourceDraws draws;
  draws.zoom[0] = draws.zoom[1] = 0;  // widest: 25 % more at each side
  CropGeometry crop = crop_geometry(spec, draws, 200, 100, -1);
  EXPECT_EQ(crop.left, -50);
  EXPECT_EQ(crop.w, 300);
  EXPECT_EQ(crop.top, -25);
  EXPECT_EQ(crop.h, 150);
  draws.zoom[0] = draws.zoom[1] = 1;  // narrowest: a sixth less
  crop = crop_geometry(spec, draws, 200, 100, -1);
  EXPECT_EQ(crop.left, 33);
  EXPECT_EQ(crop.w, 134);
  EXPECT_EQ(crop.top, 16);
  // resize below 1 only zooms out.
  spec.resize = 0.5F;
  EXPECT_EQ(crop_geometry(spec, draws, 200, 100, -1).left, 0);
  draws.zoom[0] = 0;
  EXPECT_EQ(crop_geometry(spec, draws, 200, 100, -1).left, -100);

  spec.resize = 1;
  spec.jitter = 0.2F;
  draws.jitter[0] = 0.75F;  // -40 + 0.75 * 80
  draws.jitter[1] = 0;
  draws.jitter[2] = 0.5F;
  draws.jitter[3] = 1;
  crop = crop_geometry(spec, draws, 200, 100, -1);
  EXPECT_EQ(crop.left, 20);
  EXPECT_EQ(crop.right, -40);
  EXPECT_EQ(crop.top, 0);
  EXPECT_EQ(crop.bottom, 20);
  EXPECT_EQ(crop.w, 220);
  EXPECT_EQ(crop.h, 80);
}

TEST(CropGeometry, LetterBoxGivesTheShapeOfTheNet) {
  const AugmentSpec spec{.net_w = 100, .net_h = 100, .jitter = 0, .letter_box = true};
  const CropGeometry wide = crop_geometry(spec, {}, 200, 100, -1);
  EXPECT_EQ(wide.top, -50);
  EXPECT_EQ(wide.h, 200);
  EXPECT_EQ(wide.w, 200);
  const CropGeometry tall = crop_geometry(spec, {}, 100, 201, -1);
  EXPECT_EQ(tall.left, -50);  // 50.5 truncated
  EXPECT_EQ(tall.w, 200);
}

TEST(CropGeometry, CornersOfAMosaic) {
  AugmentSpec spec{.net_w = 100, .net_h = 100, .jitter = 0.2F};
  for (int quadrant = 0; quadrant < 4; ++quadrant) {
    for (const bool flip : {false, true}) {
      SourceDraws draws{.jitter = {0.25F, 0.9F, 0.3F, 0.8F}, .flip = flip, .corner = true};
      const CropGeometry plain = crop_geometry(spec, draws, 100, 100, -1);
      const CropGeometry pushed = crop_geometry(spec, draws, 100, 100, quadrant);
      const bool keeps_left = (quadrant % 2 == 0) != flip;
      EXPECT_EQ(keeps_left ? pushed.left : pushed.right, 0);
      EXPECT_EQ(keeps_left ? pushed.right : pushed.left, plain.left + plain.right);
      EXPECT_EQ(quadrant < 2 ? pushed.top : pushed.bottom, 0);
      EXPECT_EQ(pushed.w, plain.w);
      EXPECT_EQ(pushed.h, plain.h);
    }
  }
}

TEST(CropGeometry, NothingLeftMeansTheWholePicture) {
  AugmentSpec spec{.net_w = 100, .net_h = 100, .jitter = 0.9F};
  int reset = 0;
  for (int i = 0; i < 3000; ++i) {
    Rng rng(1, "any", static_cast<std::uint64_t>(i));
    SourceDraws draws;
    for (float& value : draws.jitter) value = rng.uniform();
    for (float& value : draws.zoom) value = rng.uniform();
    spec.resize = i % 2 == 0 ? 1.0F : 3.0F;
    spec.jitter = i % 3 == 0 ? 1e12F : 0.9F;
    const CropGeometry crop = crop_geometry(spec, draws, 100, 50, i % 5 - 1);
    ASSERT_GT(crop.w, 0);
    ASSERT_GT(crop.h, 0);
    ASSERT_LT(crop.left, 100);
    ASSERT_GT(crop.left + crop.w, 0);
    ASSERT_LT(crop.top, 50);
    ASSERT_GT(crop.top + crop.h, 0);
    if (crop.left == 0 && crop.w == 100 && crop.top == 0 && crop.h == 50) {
      ++reset;
      EXPECT_EQ(crop.right, 0);
      EXPECT_EQ(crop.bottom, 0);
    }
  }
  EXPECT_GT(reset, 300);
}

TEST(Draws, StayInTheirRanges) {
  AugmentSpec spec{.hue = 0.1F, .saturation = 1.5F, .exposure = 0, .blur = 9, .gaussian_noise = 10};
  int flips = 0, noises = 0, larger = 0;
  int blurs[3] = {};
  for (std::uint32_t slot = 0; slot < 3000; ++slot) {
    const SourceDraws draws =
        draw_source(spec, {.seed = 1, .iteration = 2, .slot = slot}, static_cast<int>(slot % 4));
    flips += draws.flip ? 1 : 0;
    noises += draws.noise ? 1 : 0;
    larger += draws.saturation > 1 ? 1 : 0;
    ASSERT_TRUE(std::abs(draws.hue) <= 0.1F);
    ASSERT_TRUE(draws.saturation >= 1 / 1.5F && draws.saturation <= 1.5F);
    ASSERT_EQ(draws.exposure, 1);  // 0 is read as 1
    ASSERT_TRUE(draws.blur == 0 || draws.blur == 1 || draws.blur == 9);
    ++blurs[draws.blur == 9 ? 2 : draws.blur];
  }
  EXPECT_NEAR(flips, 1500, 120);
  EXPECT_NEAR(noises, 1500, 120);
  EXPECT_NEAR(larger, 1500, 120);
  for (const int count : blurs) EXPECT_NEAR(count, 1000, 120);
}

TEST(DetectorMix, CombinesTheKeys) {
  std::vector<std::string> messages;
  EXPECT_EQ(detector_mix(0, false, false, messages), MixKind::kNone);
  EXPECT_EQ(detector_mix(1, false, false, messages), MixKind::kMixup);
  EXPECT_EQ(detector_mix(1, false, true, messages), MixKind::kMosaic);
  EXPECT_TRUE(messages.empty());
  EXPECT_EQ(detector_mix(0, true, false, messages), MixKind::kNone);
  EXPECT_EQ(detector_mix(0, true, true, messages), MixKind::kMosaic);
  EXPECT_EQ(messages.size(), 2U);
}

}  // namespace
}  // namespace lantern::data
