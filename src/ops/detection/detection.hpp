#pragma once

#include <cstdint>

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

/// Everything the [detection] loss of YOLOv1 depends on besides predictions and truth
/// (reference/training.md 12.9).
struct DetectionParams final : graph::OpParams {
  int classes = 1;
  int boxes = 1;          ///< `num`, of a cell
  std::int64_t side = 7;  ///< of the grid
  int max_truths =
      200;  ///< truth rows an image, 6 floats each: x y w h class track; x = 0 ends the list
  bool softmax = false;  ///< over the classes of a cell
  bool sqrt = false;     ///< width and height are predicted as square roots
  bool rescore = false;  ///< the objectness target is the IoU
  bool forced = false;   ///< the box of a cell is chosen by the size of the truth
  bool random = false;   ///< the box of a cell is drawn during the first kRandomBoxImages
  float coord_scale = 1, object_scale = 1, noobject_scale = 1, class_scale = 1;
  int layer = 0;  ///< tells the draws of several heads apart

  std::int64_t cells() const { return side * side; }
  std::int64_t image_size() const { return cells() * (classes + std::int64_t{boxes} * 5); }
  /// Where the objectness of a box lies, and its first coordinate.
  std::int64_t objectness(std::int64_t cell, std::int64_t box) const {
    return cells() * classes + cell * boxes + box;
  }
  std::int64_t coordinates(std::int64_t cell, std::int64_t box) const {
    return cells() * (classes + boxes) + (cell * boxes + box) * 4;
  }
  std::string describe() const override;
};

/// Images of a run from scratch during which `random` draws the box of a cell.
inline constexpr std::int64_t kRandomBoxImages = 64000;

/// Addresses the draws of `random`: the box of a cell is a function of these and of the layer only.
struct DetectionDraw {
  std::uint64_t seed = 0;
  std::uint64_t iteration = 0;
  std::uint32_t image = 0;  ///< of the iteration
};

/// One image: the values as they are, the classes of a cell through a softmax where asked for.
void detection_activate(const DetectionParams& params, const float* raw, float* output);

/// One image: deltas from the activated output [cells x classes][cells x boxes][cells x boxes x 4];
/// returns the sum of their squares. The first truth row of a cell is its truth; a row whose class
/// is out of range, that has no area or that holds a number that is not finite is passed over.
/// `draw` is null when boxes are chosen by overlap. Darknet: reads a truth that lies cell by cell
/// (objectness, one-hot class, box), made by a loader of its own; here [detection] reads the rows
/// that every other head reads.
double detection_delta(const DetectionParams& params, const float* output, const float* truth_rows,
                       const DetectionDraw* draw, float* delta);

/// Inference: raw [N, C, H, W] of image_size() values -> same shape.
extern const graph::OpDef kDetectionForward;
/// Training. Inputs raw, truth [N, max*6] -> output as kDetectionForward, delta, cost f64 [N, 1].
extern const graph::OpDef kDetectionLoss;

KernelChoice choose_detection_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_detection_loss(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
