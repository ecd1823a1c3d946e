#include "data/detector_samples.hpp"

#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"

namespace lantern::data {

Dataset make_dataset(const ImageList& list, LabelSet labels) {
  LANTERN_ASSERT(labels.labels.size() == list.images.size(), "labels are those of the list");
  return {.images = list.images,
          .labels = std::move(labels.labels),
          .label_files = std::move(labels.paths)};
}

namespace {

struct Scratch final : SampleScratch {
  AugmentScratch augment;
};

}  // namespace

DetectorSamples::DetectorSamples(std::shared_ptr<const Dataset> dataset, AugmentSpec augment)
    : dataset_(std::move(dataset)), augment_(augment) {
  LANTERN_ASSERT(dataset_ != nullptr, "there is a data set");
}

SampleShape DetectorSamples::shape() const {
  return {.net_w = augment_.net_w,
          .net_h = augment_.net_h,
          .channels = augment_.channels,
          .truth_floats = 6 * static_cast<std::size_t>(augment_.max_boxes)};
}

AugmentSpec DetectorSamples::augment_at(const SampleShape& shape) const {
  AugmentSpec augment = augment_;
  augment.net_w = shape.net_w;
  augment.net_h = shape.net_h;
  return augment;
}

int DetectorSamples::sources(const SampleKey& key, const SampleShape& shape) const {
  return plan_sample(augment_at(shape), key).sources;
}

std::unique_ptr<SampleScratch> DetectorSamples::new_scratch() const {
  return std::make_unique<Scratch>();
}

Bytes DetectorSamples::scratch_bytes(const SampleShape& shape) const {
  // Two pictures at network size: the canvas, and what a blur needs.
  return 2 * static_cast<Bytes>(shape.picture_floats() * sizeof(float));
}

void DetectorSamples::make(const SampleKey& key, const SampleShape& shape,
                           std::span<const SourceImage> sources, SampleScratch& scratch,
                           std::span<float> pixels, std::span<float> truth) const {
  const AugmentSpec augment = augment_at(shape);
  SampleSource labelled[kMaxSources];
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const auto i = static_cast<std::size_t>(sources[s].index);
    labelled[s] = {sources[s].image, dataset_->labels[i], dataset_->label_files[i]};
  }
  const SampleReport report =
      prepare_training_sample(augment, key, plan_sample(augment, key),
                              std::span<const SampleSource>(labelled, sources.size()),
                              static_cast<Scratch&>(scratch).augment, pixels, truth);
  if (report.truncated > 0 && !truncation_told_.exchange(true)) {
    log::warning("{}: {} boxes do not fit into max={} and are left out (said once)",
                 images()[static_cast<std::size_t>(sources[0].index)], report.truncated,
                 augment.max_boxes);
  }
}

}  // namespace lantern::data
