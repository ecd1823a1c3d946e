#include "data/pixels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "test_files.hpp"

namespace lantern::data::pixels {
namespace {

TEST(CropResize, MatchesTheFormulaWithFillAndFlip) {
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    Rng rng(1, "crop", static_cast<std::uint64_t>(i));
    const int c = i % 4 == 0 ? 1 : 3;
    const auto w = static_cast<int>(rng.uniform_int(1, 90)),
               h = static_cast<int>(rng.uniform_int(1, 90));
    const Image image = random_image(w, h, c, static_cast<std::uint64_t>(i));
    CropGeometry crop;
    crop.left = static_cast<int>(rng.uniform_int(-w, w - 1));
    crop.top = static_cast<int>(rng.uniform_int(-h, h - 1));
    crop.w = static_cast<int>(rng.uniform_int(1, 2 * w));
    crop.h = static_cast<int>(rng.uniform_int(1, 2 * h));
    const Colour fill{{7, 100, 250}};
    const bool flip = rng.coin();
    Canvas canvas;
    canvas.reset(40, 31, c);
    ResampleTables tables;
    const Rect window{i % 2 == 0 ? 0 : 5, i % 3 == 0 ? 0 : 9, 40, 31};
    crop_resize(image, crop, fill, flip, {}, window, tables, canvas);
    const auto at = [&](int x, int y, int k) -> double {
      x += crop.left;
      y += crop.top;
      if (x < 0 || y < 0 || x >= w || y >= h) return fill.value[k];
      return image.row(y)[x * c + k];
    };
    for (int y = window.y0; y < window.y1; ++y) {
      for (int x = window.x0; x < window.x1; ++x) {
        const int column = flip ? 39 - x : x;
        const double sx = std::clamp((column + 0.5) * crop.w / 40 - 0.5, 0.0, crop.w - 1.0);
        const double sy = std::clamp((y + 0.5) * crop.h / 31 - 0.5, 0.0, crop.h - 1.0);
        const int x0 = static_cast<int>(sx), y0 = static_cast<int>(sy);
        const int x1 = std::min(x0 + 1, crop.w - 1), y1 = std::min(y0 + 1, crop.h - 1);
        const double fx = sx - x0, fy = sy - y0;
        for (int k = 0; k < c; ++k) {
          const double want = (1 - fy) * ((1 - fx) * at(x0, y0, k) + fx * at(x1, y0, k)) +
                              fy * ((1 - fx) * at(x0, y1, k) + fx * at(x1, y1, k));
          ASSERT_NEAR(canvas.row(k, y)[x], want, 0.52) << x << " " << y << " " << k;
        }
      }
    }
  }
}

TEST(MeanColour, IsEachChannelsRoundedMean) {
  std::vector<std::uint32_t> columns;
  for (const auto& [w, h] : {std::pair{1, 1}, {7, 5}, {130, 3}, {3, 70000}}) {
    const Image image = random_image(w, h, 3, 5);
    double sums[3] = {};
    for (std::size_t i = 0; i < image.pixels.size(); ++i) sums[i % 3] += image.pixels[i];
    const Colour mean = mean_colour(image, columns);
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(mean.value[k], sums[k] / w / h, 0.5001);
  }
}

using Rgb = std::array<int, 3>;

/// Section 4.4 step 4 word by word, hue wrapping.
Rgb distorted(const Rgb& rgb, float dhue, float dsat, float dexp) {
  const auto [r, g, b] = rgb;
  const int v = std::max({r, g, b}), range = v - std::min({r, g, b});
  const long s = v == 0 ? 0 : std::lround(255.0 * range / v);
  double degrees = 0;
  if (range > 0) {
    degrees = v == r ? 60.0 * (g - b) / range
                     : (v == g ? 120 + 60.0 * (b - r) / range : 240 + 60.0 * (r - g) / range);
  }
  if (degrees < 0) degrees += 360;
  long hue = std::lround(degrees / 2) % 180;
  const double s2 = std::min(255L, std::lround(static_cast<double>(static_cast<float>(s) * dsat)));
  const double v2 = std::min(255L, std::lround(static_cast<double>(static_cast<float>(v) * dexp)));
  hue = ((hue + std::lround(179 * static_cast<double>(dhue))) % 180 + 180) % 180;
  const double sector = static_cast<double>(hue) / 30;
  const int i = static_cast<int>(sector);
  const double f = sector - i, p = v2 * (1 - s2 / 255), q = v2 * (1 - s2 / 255 * f),
               t = v2 * (1 - s2 / 255 * (1 - f));
  const std::array<std::array<double, 3>, 6> sectors = {
      {{v2, t, p}, {q, v2, p}, {p, v2, t}, {p, q, v2}, {t, p, v2}, {v2, p, q}}};
  Rgb out{};
  for (std::size_t k = 0; k < 3; ++k)
    out[k] = static_cast<int>(std::lround(sectors[static_cast<std::size_t>(i)][k]));
  return out;
}

TEST(DistortHsv8Bit, MatchesTheFormulasWithinOneLevel) {
  Rng rng(2, "colours");
  const std::tuple<float, float, float> shifts[] = {{0.1F, 1.5F, 1.5F}, {-0.1F, 1 / 1.5F, 1 / 1.5F},
                                                    {0, 1.3F, 1},       {0.5F, 1, 0.8F},
                                                    {-1, 1, 1},         {0.03F, 3, 2}};
  for (const auto& [hue, saturation, exposure] : shifts) {
    std::vector<std::uint8_t> r(2000), g(2000), b(2000);
    for (std::size_t i = 0; i < r.size(); ++i) {
      r[i] = static_cast<std::uint8_t>(rng.next_u32());
      g[i] = i % 5 == 0 ? r[i] : static_cast<std::uint8_t>(rng.next_u32());
      b[i] = i % 10 == 0 ? r[i] : (i % 7 == 0 ? 0 : static_cast<std::uint8_t>(rng.next_u32()));
    }
    const auto r0 = r, g0 = g, b0 = b;
    distort_hsv_8bit(r.data(), g.data(), b.data(), r.size(), {hue, saturation, exposure});
    for (std::size_t i = 0; i < r.size(); ++i) {
      const Rgb want = distorted({r0[i], g0[i], b0[i]}, hue, saturation, exposure);
      ASSERT_NEAR(r[i], want[0], 1) << int{r0[i]} << " " << int{g0[i]} << " " << int{b0[i]};
      ASSERT_NEAR(g[i], want[1], 1) << int{r0[i]} << " " << int{g0[i]} << " " << int{b0[i]};
      ASSERT_NEAR(b[i], want[2], 1) << int{r0[i]} << " " << int{g0[i]} << " " << int{b0[i]};
    }
  }
}

TEST(DistortHsv8Bit, HueWrapsAtRed) {
  std::uint8_t r = 200, g = 10, b = 10;
  distort_hsv_8bit(&r, &g, &b, 1, {-0.1F, 1, 1});
  EXPECT_EQ(r, 200);
  EXPECT_EQ(g, 10);
  EXPECT_GT(b, 100);  // toward magenta; without the wrap it would stay red
}

TEST(GaussianBlur, MatchesADirectSum) {
  for (const int k : {3, 5, 7, 9, 17}) {
    const std::vector<float> kernel = gaussian_kernel(k);
    double sum = 0;
    for (const float weight : kernel) sum += static_cast<double>(weight);
    EXPECT_NEAR(sum, 1, 1e-6);
    Canvas canvas;
    canvas.reset(13, 6, 1);  // smaller than the kernel: mirrored more than once
    Rng rng(3, "blur");
    for (std::uint8_t& value : canvas.data) value = static_cast<std::uint8_t>(rng.next_u32());
    const Canvas before = canvas;
    BlurBuffers buffers;
    gaussian_blur(canvas, k, buffers);
    const auto mirror = [](int i, int n) {
      while (i < 0 || i >= n) i = i < 0 ? -i : 2 * (n - 1) - i;
      return i;
    };
    for (int y = 0; y < 6; ++y) {
      for (int x = 0; x < 13; ++x) {
        double want = 0;
        for (int j = 0; j < k; ++j) {
          for (int i = 0; i < k; ++i) {
            want += static_cast<double>(kernel[static_cast<std::size_t>(i)]) *
                    static_cast<double>(kernel[static_cast<std::size_t>(j)]) *
                    before.data[static_cast<std::size_t>(mirror(y + j - k / 2, 6) * 13 +
                                                         mirror(x + i - k / 2, 13))];
          }
        }
        ASSERT_NEAR(canvas.row(0, y)[x], want, 0.51) << k;
      }
    }
  }
  // The fixed kernels of 3, 5 and 7, and sigma = 0.3 ((k - 1)/2 - 1) + 0.8 beyond.
  EXPECT_FLOAT_EQ(gaussian_kernel(7)[1], 3.5F / 32);
  const auto nine = gaussian_kernel(9);
  EXPECT_NEAR(nine[3] / nine[4], std::exp(-1 / (2 * 1.7 * 1.7)), 1e-6);
}

TEST(Noise, IsTwoSidedWithTheGivenDeviation) {
  NoiseTable table;
  table.prepare(20);
  Canvas canvas;
  canvas.reset(400, 300, 1);
  std::fill(canvas.data.begin(), canvas.data.end(), std::uint8_t{128});
  Rng rng(4, "noise");
  add_noise(canvas, {0, 0, 400, 300}, table, rng);
  double sum = 0, squares = 0;
  int below = 0;
  for (const std::uint8_t value : canvas.data) {
    sum += value - 128;
    squares += (value - 128) * (value - 128);
    below += value < 128 ? 1 : 0;
  }
  const auto count = static_cast<double>(canvas.data.size());
  EXPECT_NEAR(sum / count, 0, 0.3);
  EXPECT_NEAR(std::sqrt(squares / count), 20, 0.3);
  EXPECT_NEAR(below / count, 0.49, 0.01);
}

}  // namespace
}  // namespace lantern::data::pixels
