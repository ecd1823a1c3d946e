#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "ops/crop/crop.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

using graph::Op;
using graph::OpParams;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& params, std::span<const TensorType> inputs) {
  const auto& p = static_cast<const CropParams&>(params);
  const Shape& in = inputs[0].shape;
  LANTERN_ASSERT(p.height <= in.h() && p.width <= in.w(), "the crop lies inside the image");
  return {{Shape{in.n(), in.c(), p.height, p.width}, DType::kF32}};
}

// One image as the crop reads it.
class Source {
 public:
  Source(const Shape& shape, const CropDraw& draw, const float* values)
      : w_(shape.w()), h_(shape.h()), draw_(draw), values_(values) {}

  float at(std::int64_t c, std::int64_t y, std::int64_t x) const {
    const std::int64_t cell = y * w_ + x;
    const std::int64_t plane = w_ * h_;
    const float value = values_[c * plane + cell];
    if (!draw_.changes_colour()) return value;
    const float brightest =
        std::max({values_[cell], values_[plane + cell], values_[2 * plane + cell]});
    return draw_.exposure * (brightest + draw_.saturation * (value - brightest));
  }

  // Bilinear between the four cells around; cells outside are 0.
  float between(std::int64_t c, float y, float x) const {
    const float left = std::floor(x);
    const float top = std::floor(y);
    const float dx = x - left;
    const float dy = y - top;
    const auto cell = [&](float cy, float cx) {
      const bool inside =
          cy >= 0 && cx >= 0 && cy < static_cast<float>(h_) && cx < static_cast<float>(w_);
      return inside ? at(c, static_cast<std::int64_t>(cy), static_cast<std::int64_t>(cx)) : 0.0F;
    };
    return (1 - dy) * ((1 - dx) * cell(top, left) + dx * cell(top, left + 1)) +
           dy * ((1 - dx) * cell(top + 1, left) + dx * cell(top + 1, left + 1));
  }

 private:
  std::int64_t w_, h_;
  const CropDraw& draw_;
  const float* values_;
};

void crop_image(const CropParams& p, const Shape& shape, const CropDraw& draw, const float* src,
                float* dst) {
  const Source source(shape, draw, src);
  const float factor = p.adjust ? 2.0F : 1.0F;
  const float cosine = std::cos(draw.angle);
  const float sine = std::sin(draw.angle);
  const float centre_x = static_cast<float>(shape.w()) / 2;
  const float centre_y = static_cast<float>(shape.h()) / 2;
  for (std::int64_t c = 0; c < shape.c(); ++c) {
    const float offset =
        (p.adjust ? -1.0F : 0.0F) + (c < 3 ? draw.shift[static_cast<std::size_t>(c)] : 0.0F);
    for (std::int64_t i = 0; i < p.height; ++i) {
      for (std::int64_t j = 0; j < p.width; ++j) {
        const std::int64_t x = draw.flip ? shape.w() - draw.x - j - 1 : draw.x + j;
        const std::int64_t y = draw.y + i;
        float value = 0;
        if (draw.angle == 0) {
          value = source.at(c, y, x);
        } else {
          const float from_x = static_cast<float>(x) - centre_x;
          const float from_y = static_cast<float>(y) - centre_y;
          value = source.between(c, sine * from_x + cosine * from_y + centre_y,
                                 cosine * from_x - sine * from_y + centre_x);
        }
        *dst++ = factor * value + offset;
      }
    }
  }
}

}  // namespace

std::string CropParams::describe() const {
  return fmt::format(
      "size={}x{} training={} layer={} flip={} angle={} saturation={} exposure={} shift={} "
      "adjust={}",
      width, height, training, layer, flip, angle, saturation, exposure, shift, adjust);
}

CropDraw draw_crop(const CropParams& params, const Shape& src, const RunContext& run,
                   std::int64_t image) {
  if (!params.training) {
    return {.x = (src.w() - params.width) / 2, .y = (src.h() - params.height) / 2};
  }
  constexpr std::uint64_t kLayerStep = 0x9e3779b97f4a7c15ULL;
  Rng rng(run.seed + kLayerStep * static_cast<std::uint64_t>(params.layer), "crop",
          static_cast<std::uint64_t>(run.iteration),
          static_cast<std::uint32_t>(run.subdivision * src.n() + image));
  const auto factor = [&](float largest) {
    const float drawn = rng.uniform() * (largest - 1) + 1;
    return rng.coin() ? 1 / drawn : drawn;
  };
  CropDraw draw;
  draw.x = rng.uniform_int(0, src.w() - params.width);
  draw.y = rng.uniform_int(0, src.h() - params.height);
  draw.flip = rng.coin() && params.flip;
  constexpr float kRadians = 3.14159265F / 180;
  draw.angle = rng.uniform(-1, 1) * params.angle * kRadians;
  draw.saturation = factor(params.saturation);
  draw.exposure = factor(params.exposure);
  for (float& shift : draw.shift) shift = (rng.uniform() - 0.5F) * params.shift;
  return draw;
}

const graph::OpDef kCrop{.name = "crop", .infer = infer};

KernelChoice choose_crop(const Op& op, const SelectContext& context) {
  const CropParams params = op.params_as<CropParams>();
  const Shape src = context.shape(op.inputs[0]);
  const Shape dst = context.shape(op.outputs[0]);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}},
          .outputs = {Layout{}},
          .images = src.n(),
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            parallel_for(run.images, threads, [&](std::int64_t image) {
              const CropDraw draw = draw_crop(params, src, run, run.first_image + image);
              crop_image(params, src, draw,
                         static_cast<const float*>(o[0]) + image * (src.elements() / src.n()),
                         static_cast<float*>(o[1]) + image * (dst.elements() / dst.n()));
            });
          })};
}

}  // namespace lantern::ops
