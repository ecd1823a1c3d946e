#pragma once

#include <string>
#include <vector>

#include "data/class_augment.hpp"
#include "data/class_labels.hpp"
#include "data/sample_maker.hpp"

namespace lantern::data {

/// Samples of a classifier: truth is one number a class, the sum 1 for pictures of one class. Of
/// several classes each has the number of a single one (as in Darknet).
class ClassSamples final : public SampleMaker {
 public:
  /// `smoothing` (label_smooth_eps): the class of a picture has 1 - it, the others share it.
  ClassSamples(ClassSet set, int classes, float smoothing, ClassAugment augment);

  const std::vector<std::string>& images() const override { return set_.images; }
  SampleShape shape() const override;
  int sources(const SampleKey& key, const SampleShape& shape) const override;
  std::unique_ptr<SampleScratch> new_scratch() const override;
  Bytes scratch_bytes(const SampleShape& shape) const override;
  void make(const SampleKey& key, const SampleShape& shape, std::span<const SourceImage> sources,
            SampleScratch& scratch, std::span<float> pixels, std::span<float> truth) const override;

 private:
  ClassAugment augment_at(const SampleShape& shape) const;
  ClassSet set_;
  int classes_;
  float smoothing_;
  ClassAugment augment_;
};

}  // namespace lantern::data
