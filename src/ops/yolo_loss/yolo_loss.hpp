#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "ops/yolo_loss/box_iou.hpp"
#include "ops/yolo_loss/yolo_params.hpp"

/// The [yolo] head (reference/training.md 12.1-12.7, layers.md 4.24). Every function below works on
/// ONE image, so that images can go to different threads; planes are [anchor of the mask][x y w h
/// objectness class...][row][col]. Deltas are negative gradients with respect to the layer's input,
/// as in the reference.
namespace lantern::ops {

/// Floats of one image's planes: anchors_per_cell * entries * grid_h * grid_w.
std::int64_t yolo_image_size(const YoloParams& params);

/// Activation: logistic on x, y, objectness and classes, then x, y <- s y - (s - 1) / 2 with s =
/// scale_x_y; with new_coords only the scaling. `raw` and `activated` may be the same memory.
template <typename T>
void yolo_activate(const YoloParams& params, const T* raw, T* activated);

/// What one image adds to the cost, the console line and the record of a head. Plain sums: see
/// `combine`.
struct YoloImageStats {
  double delta_squares = 0;    ///< sum of squares of all deltas
  double box_squares = 0;      ///< ... of the x, y, w, h deltas
  double non_box_squares = 0;  ///< ... of the objectness and class deltas
  double objectness_squares = 0;
  double class_squares = 0;
  double iou = 0;                  ///< sum over the assignments of step 2
  double giou = 0;                 ///< same; filled for iou_loss=giou only
  double class_probability = 0;    ///< sum over assignments of the true class's output
  double objectness_positive = 0;  ///< sum over assignments
  double objectness_all = 0;       ///< sum over all cells and anchors
  std::int64_t cells = 0;          ///< cells * anchors of the mask
  std::int64_t count = 0;          ///< assignments of step 2
  std::int64_t recall50 = 0;       ///< of them with iou > 0.5
  std::int64_t recall75 = 0;
  std::int64_t total_bbox = 0;      ///< assignments of steps 1 and 2
  std::int64_t rewritten_bbox = 0;  ///< of them, those that found a box delta already set
};

/// Sums over a mini-batch, in image order.
struct YoloStats : YoloImageStats {
  std::int64_t images = 0;

  double mean_iou() const { return count > 0 ? iou / static_cast<double>(count) : 0; }
  double mean_class() const {
    return count > 0 ? class_probability / static_cast<double>(count) : 0;
  }
  double mean_objectness_positive() const {
    return count > 0 ? objectness_positive / static_cast<double>(count) : 0;
  }
  /// Over the cells without an assignment (an assignment counts once even where two share a cell).
  double mean_objectness_negative() const {
    return cells > count
               ? (objectness_all - objectness_positive) / static_cast<double>(cells - count)
               : 0;
  }
  double recall_50() const {
    return count > 0 ? static_cast<double>(recall50) / static_cast<double>(count) : 0;
  }
  double recall_75() const {
    return count > 0 ? static_cast<double>(recall75) / static_cast<double>(count) : 0;
  }
};

/// Scratch memory that `yolo_delta` of one image needs, for elements of type T; any alignment will
/// do.
template <typename T = float>
Bytes yolo_scratch_bytes(const YoloParams& params);

/// Steps 1 to 3 of 12.3 with the box deltas of 12.4/12.6 and the class deltas of 12.5. Overwrites
/// `delta` (one image). `truth_rows`: max_truths rows of x y w h class track; the first x = 0 ends
/// the list. A row whose class (or mapped class) is out of range, or that holds a number that is
/// not finite, is passed over; a centre at the right or bottom edge belongs to the last cell.
/// Allocates nothing.
template <typename T>
YoloImageStats yolo_delta(const YoloParams& params, const T* activated, const float* truth_rows,
                          T* delta, std::span<std::byte> scratch);

YoloStats combine(std::span<const YoloImageStats> images);

/// Cost of the head over the mini-batch (12.7), not divided by the number of images.
double yolo_cost(const YoloParams& params, const YoloStats& stats);

/// The reference's console line of one head and mini-batch; losses are per image. No newline.
std::string yolo_console_line(const YoloParams& params, const YoloStats& stats, int layer_index);
/// " total_bbox = 12, rewritten_bbox = 0.000000 %", from counts since the start of the run.
std::string yolo_bbox_line(std::int64_t total_bbox, std::int64_t rewritten_bbox);

/// Class multipliers max(count) / count of counters_per_class, a count below 1 taken as 1, capped
/// at max_delta. Empty when there are no counters.
std::vector<float> yolo_class_multipliers(const YoloParams& params);

}  // namespace lantern::ops
