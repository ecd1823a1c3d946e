#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/rng.hpp"
#include "data/image.hpp"
#include "data/labels.hpp"
#include "data/sample_maker.hpp"

namespace lantern::data {

/// Address of a source's draws within an iteration; up to 8 sources a sample.
inline std::uint32_t source_index(const SampleKey& key, int source) {
  return key.slot * 8U + static_cast<std::uint32_t>(source);
}
/// v = U(1, s) or 1/v with equal chance; 0 is read as 1.
float random_scale(Rng& rng, float scale);

enum class MixKind : std::uint8_t { kNone, kMixup, kMosaic };
/// What [net] mixup, cutmix and mosaic together mean for a detector; what is not possible is said
/// in `messages`.
MixKind detector_mix(int mixup, bool cutmix, bool mosaic, std::vector<std::string>& messages);

/// All that decides how a training picture is made; from [net] and the last detection layer.
struct AugmentSpec {
  int net_w = 416, net_h = 416;
  int channels = 3;
  int classes = 0;      ///< labels at or above are dropped; <= 0: not checked
  int max_boxes = 200;  ///< key `max`: rows of truth
  float jitter = 0.2F;
  float resize = 1.0F;
  bool flip = true;
  float hue = 0, saturation = 1, exposure = 1;
  int blur = 0;
  float gaussian_noise = 0;
  MixKind mix = MixKind::kNone;
  bool mosaic_bound = false;
  bool letter_box = false;
};

/// Which sources a sample needs: 1, 2 (mixup) or 4 (mosaic), decided by one coin an image.
struct SamplePlan {
  MixKind mix = MixKind::kNone;
  int sources = 1;
  int cut_x = 0, cut_y = 0;  ///< mosaic: where the quadrants meet
};
SamplePlan plan_sample(const AugmentSpec& spec, const SampleKey& key);

/// The draws of one source (section 4.2 of Darknet's training law).
struct SourceDraws {
  float zoom[2] = {0, 0};          ///< q1: left and top, q2: right and bottom
  float jitter[4] = {0, 0, 0, 0};  ///< left, right, top, bottom
  bool flip = false;
  float hue = 0, saturation = 1, exposure = 1;
  int blur = 0;
  bool noise = false;
  bool corner = false;  ///< mosaic: push the picture into its corner
};
SourceDraws draw_source(const AugmentSpec& spec, const SampleKey& key, int source);

/// The rectangle of the source that becomes the net input; may stick out. Pixels of the source;
/// right and bottom count inwards.
struct CropGeometry {
  int left = 0, right = 0, top = 0, bottom = 0;
  int w = 0, h = 0;
};
/// `quadrant` 0..3 for mosaic, -1 otherwise.
CropGeometry crop_geometry(const AugmentSpec& spec, const SourceDraws& draws, int image_w,
                           int image_h, int quadrant);

/// One row of truth as the losses read it.
struct TruthBox {
  float x = 0, y = 0, w = 0, h = 0;
  float class_id = 0;
  float track = 0;
};
/// A box under crop and flip, clipped to [0, 1]; w or h is 0 when nothing of it is left.
TruthBox transform_box(const Label& label, const CropGeometry& crop, int image_w, int image_h,
                       bool flip);

/// How many boxes did not fit into `max`.
struct SampleReport {
  int boxes = 0;
  int truncated = 0;
};

struct SampleSource {
  const Image* image = nullptr;
  std::span<const Label> labels{};
  std::string_view label_file{};  ///< for the track id
};

/// Buffers that are reused from picture to picture; one per thread.
class AugmentScratch {
 public:
  AugmentScratch();
  ~AugmentScratch();
  AugmentScratch(AugmentScratch&&) noexcept;
  AugmentScratch& operator=(AugmentScratch&&) noexcept;
  struct Buffers;
  Buffers& buffers() { return *buffers_; }

 private:
  std::unique_ptr<Buffers> buffers_;
};

/// Writes pixels [channels][net_h][net_w] in [0, 1] and truth [max_boxes][6] (x, y, w, h, class,
/// track id; the list ends at the first x = 0). `sources` has plan.sources entries whose pictures
/// have spec.channels channels. A pure function of its arguments.
SampleReport prepare_training_sample(const AugmentSpec& spec, const SampleKey& key,
                                     const SamplePlan& plan, std::span<const SampleSource> sources,
                                     AugmentScratch& scratch, std::span<float> pixels,
                                     std::span<float> truth);

}  // namespace lantern::data
