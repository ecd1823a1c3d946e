#pragma once

#include <cstdint>
#include <optional>

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"
#include "ops/yolo_loss/yolo_params.hpp"

namespace lantern::ops {

/// Supervised contrastive loss of embeddings (reference/training.md 12.9).
struct ContrastiveParams final : graph::OpParams {
  /// Detection form: the head whose truths are the items; an item's embedding lies at the channels
  /// of its anchor, in its cell. Classifier form without it: one item an image.
  std::optional<YoloParams> yolo;
  int classes = 1000;         ///< truth values of an image in the classifier form
  float label_threshold = 0;  ///< classifier form: a class counts as label above it
  float temperature = 1;
  float cls_normalizer = 1;      ///< weight of the loss
  float max_delta = 0;           ///< deltas are clamped to +- it
  int negatives = 3;             ///< most repulsions of an item, detection form
  std::int64_t step_images = 1;  ///< images of a time step: items of different steps do not meet

  /// Floats of truth an image.
  std::int64_t truth_floats() const {
    return yolo ? std::int64_t{yolo->max_truths} * 6 : std::int64_t{classes};
  }
  std::string describe() const override;
};

/// Training. Inputs embeddings [N,C,H,W], truth [N, truth_floats] -> the embeddings as they are,
/// delta (0 where no item is), cost f64 [N, 1]: the sum of the squares of the deltas. Runs whole:
/// items of all images of the mini-batch meet; time grows with the square of their number, memory
/// with the number.
/// Darknet: with two items of the classifier form it divides by 0; here such a pair is taken as
/// sure, as the detection form has it.
extern const graph::OpDef kContrastiveLoss;

KernelChoice choose_contrastive_loss(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
