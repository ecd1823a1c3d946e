#include "data/resize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>
#include <tuple>

#include "core/file.hpp"
#include "golden_folder.hpp"
#include "test_files.hpp"

namespace lantern::data {
namespace {

constexpr float kTolerance = 1e-5F;

/// "source_3x13x21.bin" in a golden folder.
Planes read_planes(const std::filesystem::path& file) {
  const std::string stem = file.stem();
  std::istringstream shape(stem.substr(stem.rfind('_') + 1));
  Planes planes;
  char x = 0;
  shape >> planes.c >> x >> planes.h >> x >> planes.w;
  const std::string bytes = read_file(file);
  planes.data.resize(bytes.size() / 4);
  std::memcpy(planes.data.data(), bytes.data(), bytes.size());
  EXPECT_EQ(planes.data.size(), planes.plane() * static_cast<std::size_t>(planes.c)) << file;
  return planes;
}

void expect_near(const Planes& got, const Planes& want, float tolerance, const std::string& what) {
  ASSERT_EQ(got.w, want.w) << what;
  ASSERT_EQ(got.h, want.h) << what;
  ASSERT_EQ(got.data.size(), want.data.size()) << what;
  float worst = 0;
  for (std::size_t i = 0; i < got.data.size(); ++i)
    worst = std::max(worst, std::abs(got.data[i] - want.data[i]));
  EXPECT_LE(worst, tolerance) << what;
}

TEST(Resize, MatchesTheReferencePictures) {
  int compared = 0;
  const auto root = test::golden_folder() / "image";
  for (const auto& folder : std::filesystem::directory_iterator(root)) {
    const std::string name = folder.path().filename();
    const auto find = [&](const std::string& start) {
      for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
        const std::string stem = file.path().stem();
        if (stem.starts_with(start + "_") &&
            std::isdigit(static_cast<unsigned char>(stem[start.size() + 1])) != 0) {
          ++compared;
          return read_planes(file.path());
        }
      }
      ADD_FAILURE() << start << " missing in " << name;
      return Planes{};
    };
    const Planes source = find("source");
    const Planes resized = find("resize");
    expect_near(resize(source, resized.w, resized.h), resized, kTolerance, name + " resize");
    const Planes boxed = find("letterbox");
    expect_near(letterbox(source, boxed.w, boxed.h), boxed, kTolerance, name + " letterbox");
    const Planes distorted = find("distort_hue0.1_sat1.3_exp0.8");
    Planes planes = source;
    distort_hsv(planes, 0.1F, 1.3F, 0.8F);
    expect_near(planes, distorted, kTolerance, name + " distort");
    planes = source;
    flip_horizontal(planes);
    expect_near(planes, find("flip"), 0, name + " flip");
    const Planes cropped = find("resize_min_center_crop");
    const Planes scaled = find("resize_min");
    const Extent extent = shorter_side_to({source.w, source.h}, std::min(scaled.w, scaled.h));
    expect_near(resize(source, extent.w, extent.h), scaled, kTolerance, name + " resize_min");
    expect_near(classifier_eval_crop(source, cropped.w, cropped.h), cropped, kTolerance,
                name + " centre crop");
  }
  EXPECT_EQ(compared, 21);
}

TEST(EvalView, CentreCropIsTheResizedPicturesMiddle) {
  for (const auto& [w, h, net_w, net_h] :
       {std::tuple{48, 32, 32, 32}, {31, 70, 24, 20}, {20, 20, 12, 30}, {2, 900, 16, 16}}) {
    const Image image = random_image(w, h, 3, 8);
    const Extent extent = shorter_side_to({w, h}, net_w);
    EXPECT_EQ(std::min(extent.w, extent.h), net_w);
    const Planes whole = resize(to_planes(image), extent.w, extent.h);
    const Planes got =
        prepare_eval_image(image, {.net_w = net_w, .net_h = net_h, .view = EvalView::kCentreCrop});
    ASSERT_EQ(got.w, net_w);
    ASSERT_EQ(got.h, net_h);
    const int left = (extent.w - net_w) / 2, top = (extent.h - net_h) / 2;
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < net_h; ++y) {
        for (int x = 0; x < net_w; ++x) {
          const int from_x = std::clamp(left + x, 0, extent.w - 1);
          const int from_y = std::clamp(top + y, 0, extent.h - 1);
          ASSERT_EQ(
              got.data[static_cast<std::size_t>((c * net_h + y) * net_w + x)],
              whole.data[static_cast<std::size_t>((c * extent.h + from_y) * extent.w + from_x)])
              << w << " x " << h << " at " << x << ", " << y;
        }
      }
    }
  }
}

TEST(EvalView, TenCropsAreFiveWindowsPlainAndMirrored) {
  constexpr int kNet = 40, kSide = kNet + 32;
  const Image image = random_image(60, 90, 1, 9);
  const EvalSpec spec{.net_w = kNet, .net_h = kNet, .channels = 1, .view = EvalView::kTenCrops};
  std::vector<float> got(spec.floats());
  ASSERT_EQ(got.size(), 10U * kNet * kNet);
  prepare_eval_image(image, spec, got);
  Planes whole = resize(to_planes(image), kSide, kSide);
  const std::pair<int, int> offsets[5] = {{-32, -32}, {32, -32}, {0, 0}, {-32, 32}, {32, 32}};
  std::size_t at = 0;
  for (int mirrored = 0; mirrored < 2; ++mirrored) {
    for (const auto& [dx, dy] : offsets) {
      for (int y = 0; y < kNet; ++y) {
        for (int x = 0; x < kNet; ++x, ++at) {
          const int from_x = std::clamp(dx + x, 0, kSide - 1);
          const int from_y = std::clamp(dy + y, 0, kSide - 1);
          ASSERT_EQ(got[at], whole.data[static_cast<std::size_t>(from_y * kSide + from_x)])
              << mirrored << ": " << dx << ", " << dy;
        }
      }
    }
    flip_horizontal(whole);
  }
}

TEST(EvalView, TheCentreCropPlainAndMirrored) {
  const Image image = random_image(60, 90, 3, 9);
  EvalSpec spec{.net_w = 40, .net_h = 24, .channels = 3, .view = EvalView::kCentreCrop};
  Planes crop = prepare_eval_image(image, spec);
  spec.view = EvalView::kCentreCropAndMirrored;
  std::vector<float> got(spec.floats());
  prepare_eval_image(image, spec, got);
  std::vector<float> want = crop.data;
  flip_horizontal(crop);
  want.insert(want.end(), crop.data.begin(), crop.data.end());
  EXPECT_EQ(got, want);
}

TEST(Resize, LastRowAndColumnAreTheSourcesLast) {
  // Pairs whose float product falls just below the last row (Darknet's last row is almost black
  // there).
  for (const auto& [from, to] :
       {std::pair{720, 544}, {1024, 480}, {1024, 640}, {7, 1}, {1, 9}, {5, 5}}) {
    Planes source{.w = 3,
                  .h = from,
                  .c = 1,
                  .data = std::vector<float>(static_cast<std::size_t>(3 * from), 0.25F)};
    for (int x = 0; x < 3; ++x) source.data[static_cast<std::size_t>(3 * (from - 1) + x)] = 0.75F;
    const Planes out = resize(source, 3, to);
    for (std::size_t i = out.data.size() - 3; i < out.data.size(); ++i)
      EXPECT_EQ(out.data[i], 0.75F) << from << "->" << to;
  }
}

TEST(Resize, CornerAlignedAgreesWithTheFormulaInDouble) {
  const Image image = random_image(37, 23, 3, 1);
  const Planes out = prepare_eval_image(image, {.net_w = 64, .net_h = 32, .channels = 3});
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 64; ++x) {
        const double sx = x * 36.0 / 63, sy = y * 22.0 / 31;
        const int i = std::min(static_cast<int>(sx), 35), j = std::min(static_cast<int>(sy), 21);
        const double fx = sx - i, fy = sy - j;
        const auto at = [&](int px, int py) { return image.row(py)[3 * px + c] / 255.0; };
        const double want = (1 - fy) * ((1 - fx) * at(i, j) + fx * at(i + 1, j)) +
                            fy * ((1 - fx) * at(i, j + 1) + fx * at(i + 1, j + 1));
        ASSERT_NEAR(out.data[static_cast<std::size_t>((c * 32 + y) * 64 + x)], want, 1e-3 / 255);
      }
    }
  }
}

TEST(Resize, SameSizeCopies) {
  const Image image = random_image(31, 17, 3, 2);
  for (const ResizeMode mode : {ResizeMode::kCornerAligned, ResizeMode::kHalfPixel}) {
    EXPECT_EQ(prepare_eval_image(image, {.net_w = 31, .net_h = 17, .mode = mode}).data,
              to_planes(image).data);
  }
  EXPECT_EQ(to_image(to_planes(image)).pixels, image.pixels);
}

TEST(Resize, ExtremeShapesStayFinite) {
  for (const auto& [w, h] : {std::pair{1, 1}, {2000, 2}, {2, 2000}, {7, 5}, {1, 50}}) {
    for (const bool letter_box : {false, true}) {
      const Planes out = prepare_eval_image(random_image(w, h, 3, 3),
                                            {.net_w = 32, .net_h = 24, .letter_box = letter_box});
      for (const float value : out.data) ASSERT_TRUE(value >= 0 && value <= 1);
    }
    const Letterbox box = letterbox_geometry(w, h, 32, 24);
    EXPECT_GE(box.new_w, 1);
    EXPECT_GE(box.new_h, 1);
  }
}

TEST(Letterbox, UndoMapsThePictureBackToItself) {
  const Letterbox box = letterbox_geometry(640, 480, 416, 416);
  EXPECT_EQ(box.new_w, 416);
  EXPECT_EQ(box.new_h, 312);
  EXPECT_EQ(box.top, 52);
  // A box around the whole picture.
  const Box whole = undo_letterbox({.x = 0.5F, .y = 0.5F, .w = 1, .h = 312.0F / 416}, box);
  EXPECT_NEAR(whole.x, 0.5, 1e-6);
  EXPECT_NEAR(whole.y, 0.5, 1e-6);
  EXPECT_NEAR(whole.w, 1, 1e-6);
  EXPECT_NEAR(whole.h, 1, 1e-6);
  // An odd difference keeps its half pixel (as Darknet).
  const Letterbox odd = letterbox_geometry(640, 479, 416, 416);
  ASSERT_EQ(odd.new_h, 311);
  EXPECT_EQ(odd.top, 52);
  EXPECT_NEAR(undo_letterbox({.x = 0.5F, .y = 52.5F / 416, .w = 0.1F, .h = 0.1F}, odd).y, 0, 1e-6);
}

}  // namespace
}  // namespace lantern::data
