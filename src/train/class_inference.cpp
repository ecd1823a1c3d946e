#include "train/class_inference.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lantern::train {

ClassInference::ClassInference(exec::Model& model)
    : model_(model), batch_(model.options().forward_batch) {
  LANTERN_ASSERT(model.lowered().forward_images.has_value(), "inference needs a forward program");
  const std::optional<graph::TensorId>& output = model.lowered().forward_outputs.back();
  LANTERN_ASSERT(output.has_value(), "the last layer gives something");
  output_ = *output;
  const std::int64_t all = model.lowered().graph.type(output_).shape.elements();
  classes_ = static_cast<int>(all / batch_);
  values_.resize(static_cast<std::size_t>(all));
}

void ClassInference::run(std::span<const float> images, std::int64_t count, int views) {
  const std::int64_t total = count * views;
  LANTERN_ASSERT(count >= 1 && views >= 1, "a run has pictures");
  const std::size_t one = images.size() / static_cast<std::size_t>(total);
  const auto classes = static_cast<std::size_t>(classes_);
  scores_.assign(static_cast<std::size_t>(count) * classes, 0.0F);
  for (std::int64_t first = 0; first < total; first += batch_) {
    const std::int64_t here = std::min(batch_, total - first);
    std::span<const float> part =
        images.subspan(static_cast<std::size_t>(first) * one, static_cast<std::size_t>(here) * one);
    if (here < batch_) {
      padded_.resize(one * static_cast<std::size_t>(batch_));
      std::fill(std::ranges::copy(part, padded_.begin()).out, padded_.end(), 0.0F);
      part = padded_;
    }
    model_.forward(part);
    model_.executor().read(output_, values_);
    for (std::int64_t i = 0; i < here; ++i) {
      float* to = scores_.data() + static_cast<std::size_t>((first + i) / views) * classes;
      const float* from = values_.data() + static_cast<std::size_t>(i) * classes;
      for (std::size_t c = 0; c < classes; ++c) to[c] += from[c];
    }
  }
  if (views == 1) return;
  for (float& score : scores_) score /= static_cast<float>(views);
}

std::span<const float> ClassInference::scores(std::int64_t image) const {
  const auto classes = static_cast<std::size_t>(classes_);
  return std::span(scores_).subspan(static_cast<std::size_t>(image) * classes, classes);
}

}  // namespace lantern::train
