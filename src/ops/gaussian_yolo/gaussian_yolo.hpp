#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"
#include "ops/yolo_loss/yolo_params.hpp"

namespace lantern::ops {

/// The [Gaussian_yolo] head (reference/training.md 12.8): as [yolo], but every coordinate comes
/// with its deviation.
struct GaussianParams final : graph::OpParams {
  enum class Point : std::uint8_t { kCenter, kLeftTop, kRightBottom };

  YoloParams
      yolo;  ///< what it shares with [yolo]; focal_loss, new_coords and show_details are not read
  float uc_normalizer = 1.0F;
  Point point = Point::kCenter;  ///< which point of the box x and y predict

  std::int64_t entries() const { return 9 + yolo.classes; }
  std::int64_t image_size() const {
    return yolo.grid_w * yolo.grid_h * yolo.anchors_per_cell() * entries();
  }
  std::string describe() const override;
};

/// One image of planes [anchor][x sx y sy w sw h sh objectness class...][row][column]: logistic on
/// all but w and h, then x and y scaled as scale_x_y says. `raw` and `activated` may be the same
/// memory.
void gaussian_activate(const GaussianParams& params, const float* raw, float* activated);

/// One image: overwrites `delta`; returns the sum of the squares of all deltas. Truth rows as in
/// yolo_delta.
double gaussian_delta(const GaussianParams& params, const float* activated, const float* truth_rows,
                      float* delta);

/// Inference: raw [N, A*(9+classes), H, W] -> activated planes, same shape.
extern const graph::OpDef kGaussianForward;
/// Training. Inputs raw, truth [N, max*6] -> activated, delta (negative gradient with respect to
/// raw), cost f64 [N, 1].
extern const graph::OpDef kGaussianLoss;

KernelChoice choose_gaussian_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_gaussian_loss(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
