#include "data/class_samples.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace lantern::data {

ClassSamples::ClassSamples(ClassSet set, int classes, float smoothing, ClassAugment augment)
    : set_(std::move(set)), classes_(classes), smoothing_(smoothing), augment_(augment) {
  for (const int id : set_.classes) LANTERN_ASSERT(id >= 0 && id < classes, "a class of the net");
}

SampleShape ClassSamples::shape() const {
  return {.net_w = augment_.net_w,
          .net_h = augment_.net_h,
          .channels = augment_.channels,
          .truth_floats = static_cast<std::size_t>(classes_)};
}

ClassAugment ClassSamples::augment_at(const SampleShape& shape) const {
  ClassAugment augment = augment_;
  augment.net_w = shape.net_w;
  augment.net_h = shape.net_h;
  return augment;
}

int ClassSamples::sources(const SampleKey& key, const SampleShape& shape) const {
  return plan_class_mix(augment_at(shape), key).sources;
}

std::unique_ptr<SampleScratch> ClassSamples::new_scratch() const {
  return std::make_unique<ClassScratch>();
}

Bytes ClassSamples::scratch_bytes(const SampleShape& shape) const {
  // The square window, the picture resized from it, and what a blur needs.
  const Bytes side = std::max(shape.net_w, shape.net_h);
  return (side * side * shape.channels + 2 * static_cast<Bytes>(shape.picture_floats())) *
         static_cast<Bytes>(sizeof(float));
}

void ClassSamples::make(const SampleKey& key, const SampleShape& shape,
                        std::span<const SourceImage> sources, SampleScratch& scratch,
                        std::span<float> pixels, std::span<float> truth) const {
  const ClassAugment augment = augment_at(shape);
  const ClassMixPlan plan = plan_class_mix(augment, key);
  prepare_class_picture(augment, key, plan, sources, static_cast<ClassScratch&>(scratch), pixels);
  const float others = classes_ > 1 ? smoothing_ / static_cast<float>(classes_ - 1) : 0;
  std::ranges::fill(truth, others);  // the weights of the sources sum to 1
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const auto index = static_cast<std::size_t>(sources[s].index);
    const float own = plan.weights[s] * (1 - smoothing_ - others);
    truth[static_cast<std::size_t>(set_.classes[index])] += own;
    const auto further = set_.further.find(index);
    if (further == set_.further.end()) continue;
    for (const int id : further->second) truth[static_cast<std::size_t>(id)] += own;
  }
}

}  // namespace lantern::data
