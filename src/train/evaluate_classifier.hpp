#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/class_labels.hpp"
#include "data/resize.hpp"
#include "eval/top_k.hpp"
#include "exec/model.hpp"
#include "train/evaluate.hpp"

namespace lantern::train {

/// How `classifier valid` and its kin, `predict` and -topk see a picture.
data::EvalSpec class_eval_spec(const layers::NetSpec& net,
                               data::EvalView view = data::EvalView::kCentreCrop);

struct ClassEvaluation {
  data::EvalView view = data::EvalView::kCentreCrop;
  int top = 1;      ///< k of top-k
  int threads = 1;  ///< of the loader
  /// Called for every image that can be read, in the order of the list.
  std::function<void(std::size_t index, std::span<const float> scores, const eval::TopK& so_far)>
      each{};
  EvaluateProgress progress{};
};

struct ClassEvaluationResult {
  eval::TopK accuracy;
  std::vector<BadImage> bad_images;
  double seconds = 0;
};

/// Share of right answers of a model over a set. Images that cannot be read are left out and named
/// in the result. Throws kInvalidData when none can be read.
ClassEvaluationResult evaluate_classifier(exec::Model& model, const data::ClassSet& set,
                                          const ClassEvaluation& options);

}  // namespace lantern::train
