#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/model.hpp"

namespace lantern::train {

/// Turns pictures at network size into a score for each class, what the last layer gives (of a
/// [cost] what goes into it). The model must have a forward program and must outlive this.
class ClassInference {
 public:
  explicit ClassInference(exec::Model& model);

  int classes() const { return classes_; }
  /// Pictures that are worth running at once.
  std::int64_t batch() const { return batch_; }

  /// Runs images [count * views, C, H, W], any number; the scores of a picture are the mean over
  /// its views.
  void run(std::span<const float> images, std::int64_t count, int views = 1);
  /// Of picture `image` of the last run.
  std::span<const float> scores(std::int64_t image) const;

 private:
  exec::Model& model_;
  graph::TensorId output_{};
  std::int64_t batch_ = 1;
  int classes_ = 0;
  std::vector<float> padded_, values_, scores_;
};

}  // namespace lantern::train
