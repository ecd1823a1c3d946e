#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"
#include "ops/softmax/word_tree.hpp"

namespace lantern::ops {

/// Everything the [region] loss depends on besides predictions and truth
/// (reference/training.md 12.9).
struct RegionParams final : graph::OpParams {
  int classes = 20;
  int coords = 4;              ///< values of an anchor besides objectness and classes
  std::vector<float> anchors;  ///< w, h pairs in grid cells
  int max_truths =
      200;  ///< truth rows an image, 6 floats each: x y w h class track; x = 0 ends the list
  bool softmax = false;     ///< over the classes of an anchor; else they stay raw
  bool rescore = false;     ///< the objectness target is the IoU
  bool bias_match = false;  ///< anchors are matched by their own shape, else by the predicted one
  int classfix = 0;
  bool focal_loss = false;
  float thresh = 0.5F;
  float coord_scale = 1, object_scale = 1, noobject_scale = 1, class_scale = 1;
  std::vector<int> class_map;  ///< empty: identity
  /// Null: the classes exclude each other. Otherwise they are the nodes of a tree: one softmax a
  /// group of siblings, and a truth is meant for the node and all its ancestors.
  std::shared_ptr<const WordTree> tree{};
  std::int64_t grid_w = 1, grid_h = 1;

  std::int64_t boxes() const { return static_cast<std::int64_t>(anchors.size() / 2); }
  std::int64_t entries() const { return 1 + coords + classes; }
  std::int64_t image_size() const { return grid_w * grid_h * boxes() * entries(); }
  std::string describe() const override;
};

/// Images of a run from scratch during which every cell is drawn to the shape of its anchor.
inline constexpr std::int64_t kAnchorPriorImages = 12800;

inline constexpr float kImageLabel = 100000;

/// One image: planes [anchor][x y w h objectness class...][row][column] -> the reference's order
/// [row][column][anchor][entry]; objectness through the logistic, classes through softmax where
/// asked for, the rest raw. With more than 4 coords the others lie behind the classes, raw and
/// without loss, as Darknet has them.
void region_activate(const RegionParams& params, const float* raw, float* output);

/// One image: deltas in the order of the planes, from the activated output; returns the sum of
/// their squares. A truth whose class is out of range or that holds a number that is not finite is
/// passed over. With a tree a truth whose x and y are beyond kImageLabel is one of the whole image:
/// the first one is given to the cell and anchor that find its class most likely, and nothing else
/// has a delta.
double region_delta(const RegionParams& params, const float* output, const float* truth_rows,
                    bool anchor_prior, float* delta);

/// Inference: raw [N, A*(1+coords+classes), H, W] -> same shape and size, in the reference's order
/// (see region_activate).
extern const graph::OpDef kRegionForward;
/// Training. Inputs raw, truth [N, max*6] -> output as kRegionForward, delta in the order of raw,
/// cost f64 [N, 1].
extern const graph::OpDef kRegionLoss;

KernelChoice choose_region_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_region_loss(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
