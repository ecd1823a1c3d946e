#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "data/augment.hpp"
#include "data/pixels.hpp"

namespace lantern::data {

struct AugmentScratch::Buffers {
  pixels::Canvas canvas;
  pixels::ResampleTables tables;
  pixels::BlurBuffers blur;
  pixels::NoiseTable noise;
  std::vector<std::uint32_t> columns;
  std::vector<Label> labels;
  std::vector<TruthBox> boxes;
};

AugmentScratch::AugmentScratch() : buffers_(std::make_unique<Buffers>()) {}
AugmentScratch::~AugmentScratch() = default;
AugmentScratch::AugmentScratch(AugmentScratch&&) noexcept = default;
AugmentScratch& AugmentScratch::operator=(AugmentScratch&&) noexcept = default;

namespace {

using pixels::Canvas;
using pixels::Rect;

/// Truth rows of one picture.
class TruthWriter {
 public:
  TruthWriter(std::span<float> rows, int max) : rows_(rows), max_(max) {
    std::fill(rows_.begin(), rows_.end(), 0.0F);
  }

  void add(const TruthBox& box) {
    if (report_.boxes >= max_) {
      ++report_.truncated;
      return;
    }
    const float row[6] = {box.x, box.y, box.w, box.h, box.class_id, box.track};
    std::copy(std::begin(row), std::end(row),
              rows_.begin() + static_cast<std::ptrdiff_t>(report_.boxes) * 6);
    ++report_.boxes;
  }
  const SampleReport& report() const { return report_; }

 private:
  std::span<float> rows_;
  int max_;
  SampleReport report_;
};

/// Validity, shuffle, crop and flip, then what is still at least one network pixel wide and high.
void prepare_boxes(const AugmentSpec& spec, const SampleKey& key, int source,
                   const SampleSource& from, const CropGeometry& crop, bool flip,
                   std::vector<Label>& labels, std::vector<TruthBox>& boxes) {
  labels.clear();
  for (const Label& label : from.labels) {
    const bool is_valid = label.class_id >= 0 &&
                          (spec.classes <= 0 || label.class_id < spec.classes) &&
                          std::isfinite(label.x) && std::isfinite(label.y) && label.w > 0 &&
                          label.h > 0 && std::isfinite(label.w) && std::isfinite(label.h);
    if (is_valid) labels.push_back(clip_to_image(label));
  }
  Rng rng(key.seed, "augment.shuffle", static_cast<std::uint64_t>(key.iteration),
          key.slot * 8U + static_cast<std::uint32_t>(source));
  const auto count = static_cast<std::int64_t>(labels.size());
  for (std::int64_t i = 0; i < count; ++i) {
    std::swap(labels[static_cast<std::size_t>(i)],
              labels[static_cast<std::size_t>(rng.uniform_int(0, count - 1))]);
  }
  boxes.clear();
  const float least_w = 1.0F / static_cast<float>(spec.net_w);
  const float least_h = 1.0F / static_cast<float>(spec.net_h);
  for (const Label& label : labels) {
    TruthBox box = transform_box(label, crop, from.image->w, from.image->h, flip);
    if (box.w < least_w || box.h < least_h) continue;
    box.track = track_id(from.label_file, label.line_index);
    boxes.push_back(box);
  }
}

int smallest_side(const AugmentSpec& spec, std::span<const TruthBox> boxes) {
  int smallest = boxes.empty() ? 0 : std::max(spec.net_w, spec.net_h);
  for (const TruthBox& box : boxes) {
    smallest = std::min({smallest, static_cast<int>(box.w * static_cast<float>(spec.net_w)),
                         static_cast<int>(box.h * static_cast<float>(spec.net_h))});
  }
  return smallest;
}

/// Gaussian of the whole picture; 1 means of the background: the boxes are pasted back sharp.
void blur_picture(Canvas& canvas, int blur, std::span<const TruthBox> boxes,
                  pixels::BlurBuffers& buffers) {
  constexpr int kBackgroundSize = 17;
  const bool is_background = blur == 1;
  if (is_background) buffers.sharp = canvas.data;
  pixels::gaussian_blur(canvas, is_background ? kBackgroundSize : 2 * (blur / 2) + 1, buffers);
  if (!is_background) return;
  const auto w = static_cast<float>(canvas.w);
  const auto h = static_cast<float>(canvas.h);
  for (const TruthBox& box : boxes) {
    const int left = std::clamp(static_cast<int>((box.x - box.w / 2) * w), 0, canvas.w);
    const int top = std::clamp(static_cast<int>((box.y - box.h / 2) * h), 0, canvas.h);
    const int right = std::clamp(left + static_cast<int>(box.w * w), 0, canvas.w);
    const int bottom = std::clamp(top + static_cast<int>(box.h * h), 0, canvas.h);
    for (int c = 0; c < canvas.c; ++c) {
      for (int y = top; y < bottom; ++y) {
        const std::uint8_t* sharp = buffers.sharp.data() + (canvas.row(c, y) - canvas.data.data());
        std::copy(sharp + left, sharp + right, canvas.row(c, y) + left);
      }
    }
  }
}

enum class Write { kSet, kHalf, kAddHalf };

/// Canvas window to float planes at (x, y).
void write_pixels(Canvas& canvas, const Rect& window, int x, int y, Write write,
                  std::span<float> out) {
  for (int c = 0; c < canvas.c; ++c) {
    for (int row = 0; row < window.h(); ++row) {
      const std::uint8_t* src = canvas.row(c, window.y0 + row) + window.x0;
      float* dst = out.data() + canvas.plane() * static_cast<std::size_t>(c) +
                   static_cast<std::size_t>(y + row) * static_cast<std::size_t>(canvas.w) + x;
      const int count = window.w();
      switch (write) {
        case Write::kSet:
          for (int i = 0; i < count; ++i) dst[i] = static_cast<float>(src[i]) / 255.0F;
          break;
        case Write::kHalf:
          for (int i = 0; i < count; ++i) dst[i] = 0.5F * (static_cast<float>(src[i]) / 255.0F);
          break;
        case Write::kAddHalf:
          for (int i = 0; i < count; ++i) dst[i] += 0.5F * (static_cast<float>(src[i]) / 255.0F);
          break;
      }
    }
  }
}

/// Where a quadrant of a mosaic goes, and from where in its source.
struct Quadrant {
  Rect destination;
  int source_x = 0, source_y = 0;
};

Quadrant mosaic_quadrant(const AugmentSpec& spec, const SamplePlan& plan, int number,
                         const CropGeometry& crop, bool flip, int image_w, int image_h) {
  // The border of mean colour is skipped, so that content shows.
  const auto shift = [](int most, int start, int net, int image) {
    return std::min<std::int64_t>(
        most, std::max<std::int64_t>(0, -static_cast<std::int64_t>(start) * net / image));
  };
  const int left = flip ? crop.right : crop.left;
  const int right = flip ? crop.left : crop.right;
  const int cut_x = plan.cut_x, cut_y = plan.cut_y;
  const auto left_shift = static_cast<int>(shift(cut_x, left, spec.net_w, image_w));
  const auto right_shift = static_cast<int>(shift(spec.net_w - cut_x, right, spec.net_w, image_w));
  const auto top_shift = static_cast<int>(shift(cut_y, crop.top, spec.net_h, image_h));
  const auto bottom_shift =
      static_cast<int>(shift(spec.net_h - cut_y, crop.bottom, spec.net_h, image_h));
  const bool is_left = number == 0 || number == 2;
  const bool is_top = number < 2;
  Quadrant quadrant;
  quadrant.destination = pixels::quadrant_of({cut_x, cut_y, spec.net_w, spec.net_h}, number);
  quadrant.source_x = is_left ? spec.net_w - cut_x - right_shift : left_shift;
  quadrant.source_y = is_top ? spec.net_h - cut_y - bottom_shift : top_shift;
  return quadrant;
}

/// The box of a source inside the mosaic; false when it is not kept.
bool place_in_mosaic(const AugmentSpec& spec, const Quadrant& quadrant, TruthBox& box) {
  const auto net_w = static_cast<float>(spec.net_w);
  const auto net_h = static_cast<float>(spec.net_h);
  const Rect& to = quadrant.destination;
  box.x += static_cast<float>(to.x0 - quadrant.source_x) / net_w;
  box.y += static_cast<float>(to.y0 - quadrant.source_y) / net_h;
  int left = 0, right = 0, top = 0, bottom = 0;
  const auto take_edges = [&] {
    left = static_cast<int>((box.x - box.w / 2) * net_w);
    right = static_cast<int>((box.x + box.w / 2) * net_w);
    top = static_cast<int>((box.y - box.h / 2) * net_h);
    bottom = static_cast<int>((box.y + box.h / 2) * net_h);
  };
  take_edges();
  if (spec.mosaic_bound) {
    left = std::clamp(left, to.x0, to.x1);
    right = std::clamp(right, to.x0, to.x1);
    top = std::clamp(top, to.y0, to.y1);
    bottom = std::clamp(bottom, to.y0, to.y1);
    box.x = static_cast<float>(left + right) / 2 / net_w;
    box.y = static_cast<float>(top + bottom) / 2 / net_h;
    box.w = static_cast<float>(right - left) / net_w;
    box.h = static_cast<float>(bottom - top) / net_h;
  } else {
    const auto clip = [](int low, int high, float net, float& centre, float& size) {
      if (low < 0) {
        const float over = static_cast<float>(low) / net;
        centre -= over / 2;
        size += over;
      }
      if (static_cast<float>(high) > net) {
        const float over = (static_cast<float>(high) - net) / net;
        centre -= over / 2;
        size -= over;
      }
    };
    clip(left, right, net_w, box.x, box.w);
    clip(top, bottom, net_h, box.y, box.h);
    take_edges();
  }
  return left >= 0 && right <= spec.net_w && top >= 0 && bottom <= spec.net_h && box.x > 0 &&
         box.x < 1 && box.y > 0 && box.y < 1 && box.w < 1 && box.h < 1 && box.w > 1 / net_w &&
         box.h > 1 / net_h;
}

}  // namespace

SampleReport prepare_training_sample(const AugmentSpec& spec, const SampleKey& key,
                                     const SamplePlan& plan, std::span<const SampleSource> sources,
                                     AugmentScratch& scratch, std::span<float> pixels_out,
                                     std::span<float> truth) {
  LANTERN_ASSERT(sources.size() == static_cast<std::size_t>(plan.sources),
                 "one source for each of the plan");
  AugmentScratch::Buffers& buffers = scratch.buffers();
  buffers.canvas.reset(spec.net_w, spec.net_h, spec.channels);
  LANTERN_ASSERT(pixels_out.size() == buffers.canvas.data.size(), "pixels hold one picture");
  LANTERN_ASSERT(truth.size() == 6 * static_cast<std::size_t>(spec.max_boxes),
                 "truth holds max rows");
  TruthWriter writer(truth, spec.max_boxes);
  for (int s = 0; s < plan.sources; ++s) {
    const SampleSource& source = sources[static_cast<std::size_t>(s)];
    const Image& image = *source.image;
    LANTERN_ASSERT(image.c == spec.channels, "a picture has the channels of the network");
    const bool is_mosaic = plan.mix == MixKind::kMosaic;
    const SourceDraws draws = draw_source(spec, key, s);
    const CropGeometry crop = crop_geometry(spec, draws, image.w, image.h, is_mosaic ? s : -1);
    prepare_boxes(spec, key, s, source, crop, draws.flip, buffers.labels, buffers.boxes);

    Quadrant quadrant{.destination = {0, 0, spec.net_w, spec.net_h}};
    if (is_mosaic) quadrant = mosaic_quadrant(spec, plan, s, crop, draws.flip, image.w, image.h);
    int blur = draws.blur;
    if (blur > 1) blur = std::min(blur, smallest_side(spec, buffers.boxes) / 8);
    // Only what is shown is made, unless a blur needs the neighbourhood.
    const Rect shown{quadrant.source_x, quadrant.source_y,
                     quadrant.source_x + quadrant.destination.w(),
                     quadrant.source_y + quadrant.destination.h()};
    const Rect made = blur > 0 ? Rect{0, 0, spec.net_w, spec.net_h} : shown;
    const bool sticks_out = crop.left < 0 || crop.right < 0 || crop.top < 0 || crop.bottom < 0;
    pixels::Colour fill;
    if (sticks_out) fill = pixels::mean_colour(image, buffers.columns);
    pixels::crop_resize(image, crop, fill, draws.flip,
                        {draws.hue, draws.saturation, draws.exposure}, made, buffers.tables,
                        buffers.canvas);
    if (blur > 0) blur_picture(buffers.canvas, blur, buffers.boxes, buffers.blur);
    if (draws.noise) {
      buffers.noise.prepare(std::clamp(spec.gaussian_noise, 0.0F, 127.0F));
      Rng rng(key.seed, "augment.noise.pixels", static_cast<std::uint64_t>(key.iteration),
              key.slot * 8U + static_cast<std::uint32_t>(s));
      pixels::add_noise(buffers.canvas, shown, buffers.noise, rng);
    }
    const Write write =
        plan.mix != MixKind::kMixup ? Write::kSet : (s == 0 ? Write::kHalf : Write::kAddHalf);
    write_pixels(buffers.canvas, shown, quadrant.destination.x0, quadrant.destination.y0, write,
                 pixels_out);
    for (TruthBox& box : buffers.boxes) {
      if (!is_mosaic || place_in_mosaic(spec, quadrant, box)) writer.add(box);
    }
  }
  return writer.report();
}

}  // namespace lantern::data
