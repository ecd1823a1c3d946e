// [crop] and assisted excitation: what they do in training and what they leave alone.

#include "ops/crop/crop.hpp"

#include <set>

#include "ops/excitation/excitation.hpp"
#include "ops/op_runner.hpp"

namespace lantern::test {
namespace {

using graph::TensorId;

const Shape kImages{3, 3, 6, 8};

// Every cell has a value of its own, below 1.
Floats numbered() {
  Floats values(static_cast<std::size_t>(kImages.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 1024;
  return values;
}

Floats cropped(const ops::CropParams& params, const Floats& x, const ops::RunContext& run,
               const RunnerOptions& options = {}) {
  OpRunner runner(options);
  const TensorId src = runner.source("x", kImages, x);
  const TensorId dst =
      runner.op(ops::kCrop, std::make_shared<const ops::CropParams>(params), {src}, "y")[0];
  runner.keep(dst);
  runner.run(run);
  return runner.value(dst);
}

ops::CropParams of_size(std::int64_t height, std::int64_t width, bool training) {
  ops::CropParams params;
  params.height = height;
  params.width = width;
  params.training = training;
  params.adjust = false;
  return params;
}

TEST(Crop, TakesTheCentreOutsideOfTraining) {
  for_each_way([](const RunnerOptions& options) {
    ops::CropParams params = of_size(3, 4, false);
    params.flip = true;
    params.angle = 45;
    params.saturation = params.exposure = 2;
    params.shift = 1;
    const Floats x = numbered();
    for (const bool adjust : {false, true}) {
      params.adjust = adjust;
      const Floats y = cropped(params, x, {}, options);
      std::size_t at = 0;
      for (std::int64_t plane = 0; plane < 9; ++plane) {
        for (std::int64_t i = 0; i < 3; ++i) {
          for (std::int64_t j = 0; j < 4; ++j) {
            const float v = x[static_cast<std::size_t>(plane * 48 + (i + 1) * 8 + j + 2)];
            EXPECT_EQ(y[at++], adjust ? 2 * v - 1 : v);
          }
        }
      }
    }
  });
}

TEST(Crop, DrawsAPlaceAndASideForEveryImageInTraining) {
  ops::CropParams params = of_size(3, 4, true);
  params.flip = true;
  const Floats x = numbered();
  std::set<std::tuple<std::int64_t, std::int64_t, bool>> seen;
  bool images_differ = false;
  for (std::int64_t iteration = 1; iteration <= 100; ++iteration) {
    const ops::RunContext run{.seed = 3, .iteration = iteration};
    const Floats y = cropped(params, x, run);
    for (std::int64_t image = 0; image < 3; ++image) {
      const ops::CropDraw draw = ops::draw_crop(params, kImages, run, image);
      seen.insert({draw.x, draw.y, draw.flip});
      images_differ |= draw.x != ops::draw_crop(params, kImages, run, 0).x;
      for (std::int64_t k = 0; k < 36; ++k) {
        const std::int64_t j = k % 4;
        const std::int64_t column = draw.flip ? 8 - draw.x - j - 1 : draw.x + j;
        const std::int64_t from = image * 144 + k / 12 * 48 + (draw.y + k / 4 % 3) * 8 + column;
        ASSERT_EQ(y[static_cast<std::size_t>(image * 36 + k)], x[static_cast<std::size_t>(from)]);
      }
    }
  }
  EXPECT_TRUE(images_differ);
  EXPECT_EQ(seen.size(), 5U * 4U * 2U);  // every place, both sides
  EXPECT_EQ(cropped(params, x, {.seed = 3, .iteration = 7}),
            cropped(params, x, {.seed = 3, .iteration = 7}));
}

TEST(Crop, ColourKeepsTheBrightestChannelOfAPixelBrightest) {
  ops::CropParams params = of_size(6, 8, true);
  params.saturation = 2;
  params.exposure = 1.5F;
  params.shift = 0.25F;
  params.adjust = true;
  Rng rng(4, "crop_test");
  const Floats x = random_floats(rng, kImages.elements(), 0, 1);
  const ops::RunContext run{.seed = 8, .iteration = 5};
  const Floats y = cropped(params, x, run);
  for (std::int64_t image = 0; image < 3; ++image) {
    const ops::CropDraw draw = ops::draw_crop(params, kImages, run, image);
    EXPECT_TRUE(draw.saturation >= 0.5F && draw.saturation <= 2 && draw.saturation != 1);
    EXPECT_TRUE(draw.exposure >= 1 / 1.5F && draw.exposure <= 1.5F && draw.exposure != 1);
    for (std::int64_t cell = 0; cell < 48; ++cell) {
      const auto at = [&](std::int64_t c) {
        return static_cast<std::size_t>(image * 144 + c * 48 + cell);
      };
      // Through hue, saturation and value: v' = e v, s' = f s, each channel v' (1 - s' k).
      const double v = std::max({x[at(0)], x[at(1)], x[at(2)]});
      const double s = (v - std::min({x[at(0)], x[at(1)], x[at(2)]})) / v;
      for (std::int64_t c = 0; c < 3; ++c) {
        const double k = (1 - x[at(c)] / v) / s;
        const double colour = draw.exposure * v * (1 - draw.saturation * s * k);
        EXPECT_LE(std::abs(draw.shift[static_cast<std::size_t>(c)]), 0.125F);
        EXPECT_NEAR(y[at(c)], 2 * colour - 1 + draw.shift[static_cast<std::size_t>(c)], 1e-5);
      }
    }
  }
}

TEST(Crop, TurnsAboutTheCentreAndIsBlackOutside) {
  ops::CropParams params = of_size(6, 8, true);
  params.angle = 180;
  const Floats x(static_cast<std::size_t>(kImages.elements()), 1.0F);
  int black = 0;
  for (std::int64_t iteration = 1; iteration <= 20; ++iteration) {
    const ops::RunContext run{.seed = 2, .iteration = iteration};
    const Floats y = cropped(params, x, run);
    for (std::int64_t image = 0; image < 3; ++image) {
      const ops::CropDraw draw = ops::draw_crop(params, kImages, run, image);
      EXPECT_LE(std::abs(draw.angle), 3.1416F);
      for (std::int64_t cell = 0; cell < 48; ++cell) {
        const double dx = static_cast<double>(cell % 8) - 4;
        const double dy = static_cast<double>(cell / 8) - 3;
        const double from_x = std::cos(draw.angle) * dx - std::sin(draw.angle) * dy + 4;
        const double from_y = std::sin(draw.angle) * dx + std::cos(draw.angle) * dy + 3;
        const float value = y[static_cast<std::size_t>(image * 144 + cell)];
        const bool inside = from_x > 0.01 && from_x < 6.99 && from_y > 0.01 && from_y < 4.99;
        const bool outside = from_x < -1.01 || from_x > 8.01 || from_y < -1.01 || from_y > 6.01;
        if (inside) {
          EXPECT_NEAR(value, 1, 1e-5);
        }
        if (outside) {
          EXPECT_EQ(value, 0);
        }
        black += outside ? 1 : 0;
      }
    }
  }
  EXPECT_GT(black, 0);
}

TEST(Excitation, AddsTheMeanOfTheChannelsInsideTrueBoxes) {
  for_each_way([](const RunnerOptions& options) {
    const Shape shape{2, 19, 4, 5};
    ops::ExcitationParams params;
    params.until = 60;
    params.max_truths = 3;
    Rng rng(5, "excitation");
    const Floats x = random_floats(rng, shape.elements());
    const Floats dy = random_floats(rng, shape.elements());
    // Image 0: columns 1..2 of rows 0..1, and the last cell; image 1 has no box.
    Floats truth(36, 0.0F);
    const Floats boxes{0.4F, 0.2F, 0.3F, 0.3F, 0, 0, 0.95F, 0.95F, 0.05F, 0.05F, 1, 0};
    std::ranges::copy(boxes, truth.begin());
    OpRunner runner(options);
    const TensorId src = runner.source("x", shape, x);
    const TensorId rows = runner.input("truth", Shape{2, 18}, truth);
    const TensorId dst =
        runner.op(ops::kExcitation, std::make_shared<const ops::ExcitationParams>(params),
                  {src, rows}, "y")[0];
    runner.keep(dst);
    runner.differentiate({{dst, dy}});
    runner.run({.iteration = 41, .max_iterations = 1000, .burn_in = 20});
    const double share = (1 + std::cos(M_PI * 40 / 80)) / 2;
    Floats y = x;
    for (const std::size_t cell : {1U, 2U, 6U, 7U, 19U}) {
      double sum = 0;
      for (std::size_t c = 0; c < 19; ++c) sum += static_cast<double>(x[c * 20 + cell]);
      for (std::size_t c = 0; c < 19; ++c) y[c * 20 + cell] += static_cast<float>(share * sum / 19);
    }
    expect_close(runner.value(dst), y, 1e-6F, "y");
    Floats dx = initial_gradient(options, shape);
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += dy[i];
    EXPECT_EQ(runner.gradient(src), dx);
  });
}

TEST(Excitation, FadesOverItsTime) {
  ops::ExcitationParams half;
  const auto share = [](const ops::ExcitationParams& p, std::int64_t iteration) {
    return ops::excitation_share(p, {.iteration = iteration, .max_iterations = 100, .burn_in = 10});
  };
  EXPECT_EQ(share(half, 1), 1);
  EXPECT_NEAR(share(half, 26), (1 + std::sqrt(0.5)) / 2, 1e-6);
  EXPECT_NEAR(share(half, 51), 0.5, 1e-6);
  EXPECT_EQ(share(half, 52), 0);
  ops::ExcitationParams until;
  until.until = 30;
  EXPECT_EQ(share(until, 10), 0);
  EXPECT_NEAR(share(until, 11), (1 + std::sqrt(0.5)) / 2, 1e-6);
  EXPECT_NEAR(share(until, 31), (1 - std::sqrt(0.5)) / 2, 1e-6);
  EXPECT_EQ(share(until, 32), 0);
}

}  // namespace
}  // namespace lantern::test
