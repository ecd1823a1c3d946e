#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "data/augment.hpp"
#include "data/labels.hpp"
#include "data/lists.hpp"
#include "data/sample_maker.hpp"

namespace lantern::data {

/// What a detector's training run draws from; shared by all that read it.
struct Dataset {
  std::vector<std::string> images;
  std::vector<std::vector<Label>> labels;  ///< parallel to images
  std::vector<std::string> label_files;    ///< parallel to images, for track ids
};
Dataset make_dataset(const ImageList& list, LabelSet labels);

/// Samples of a detector: truth is [max_boxes][6]. Says once when a picture has more boxes.
class DetectorSamples final : public SampleMaker {
 public:
  DetectorSamples(std::shared_ptr<const Dataset> dataset, AugmentSpec augment);

  const std::vector<std::string>& images() const override { return dataset_->images; }
  SampleShape shape() const override;
  int sources(const SampleKey& key, const SampleShape& shape) const override;
  std::unique_ptr<SampleScratch> new_scratch() const override;
  Bytes scratch_bytes(const SampleShape& shape) const override;
  void make(const SampleKey& key, const SampleShape& shape, std::span<const SourceImage> sources,
            SampleScratch& scratch, std::span<float> pixels, std::span<float> truth) const override;

 private:
  AugmentSpec augment_at(const SampleShape& shape) const;
  std::shared_ptr<const Dataset> dataset_;
  AugmentSpec augment_;
  mutable std::atomic<bool> truncation_told_{false};
};

}  // namespace lantern::data
