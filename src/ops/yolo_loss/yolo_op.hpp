#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"
#include "ops/yolo_loss/yolo_params.hpp"

namespace lantern::ops {

struct YoloOpParams final : graph::OpParams {
  explicit YoloOpParams(YoloParams p) : yolo(std::move(p)) {}
  YoloParams yolo;
  std::string describe() const override;
};

/// Inference: raw [N, A*(5+classes), H, W] -> activated planes, same shape, plain layout.
extern const graph::OpDef kYoloForward;
/// Training. Inputs raw, truth [N, max*6] -> activated (may take raw's bytes), delta (same shape,
/// the negative gradient with respect to raw), stats: one YoloImageStats an image as bytes [N,
/// sizeof].
extern const graph::OpDef kYoloLoss;

KernelChoice choose_yolo_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_yolo_loss(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
