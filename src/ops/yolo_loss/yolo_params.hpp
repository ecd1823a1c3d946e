#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace lantern::ops {

enum class IouKind : std::uint8_t { kIou = 0, kGiou = 1, kMse = 2, kDiou = 3, kCiou = 4 };

/// Everything the [yolo] loss depends on besides predictions and truth
/// (reference/training.md 12.2). Predictions are planes [image][anchor of the mask][x y w h
/// objectness class...][row][column].
struct YoloParams {
  int classes = 20;
  std::vector<float> anchors;  ///< all `num` pairs (w, h) in network-input pixels
  std::vector<int> mask;       ///< indices into the pairs; its length is the anchors per cell
  int max_truths =
      200;  ///< truth rows an image, 6 floats each: x y w h class track; x = 0 ends the list
  float ignore_thresh = 0.5F;
  float truth_thresh = 1.0F;
  float iou_thresh = 1.0F;
  IouKind iou_thresh_kind = IouKind::kIou;
  IouKind iou_loss = IouKind::kMse;
  float iou_normalizer = 0.75F;
  float obj_normalizer = 1.0F;
  float cls_normalizer = 1.0F;
  float delta_normalizer = 1.0F;
  float max_delta = std::numeric_limits<float>::max();
  std::vector<int> counters_per_class;  ///< empty: no class multipliers
  float label_smooth_eps = 0.0F;
  bool objectness_smooth = false;
  float scale_x_y = 1.0F;
  bool focal_loss = false;
  bool new_coords = false;
  bool show_details = true;           ///< false: the printed cost is the squared norm of all deltas
  bool cls_normalizer_all = false;    ///< ours: cls_normalizer scales every class delta
  bool exact_iou_gradient = false;    ///< ours: iou_grad=exact
  std::vector<int> class_map;         ///< empty: identity
  std::int64_t net_w = 1, net_h = 1;  ///< network input size in pixels
  std::int64_t grid_w = 1, grid_h = 1;

  int anchors_per_cell() const { return static_cast<int>(mask.size()); }
  int total_anchors() const { return static_cast<int>(anchors.size() / 2); }
  int entries() const { return 5 + classes; }
};

}  // namespace lantern::ops
