#pragma once

#include "ops/yolo_loss/yolo_params.hpp"

namespace lantern::ops {

/// Centre and size, relative to the image.
template <typename T>
struct Box {
  T x = 0, y = 0, w = 0, h = 0;
};

/// One number per box coordinate: a gradient in centre form, or a delta.
template <typename T>
struct BoxVector {
  T x = 0, y = 0, w = 0, h = 0;
};

/// Intersection over union; 0 where either area is 0 (reference/training.md 12.6, "Values").
template <typename T>
T box_iou(const Box<T>& a, const Box<T>& b);

/// iou, giou, diou = iou - (S/D)^0.6, ciou = iou - (S/D + alpha v); kMse counts as kIou. `a` is the
/// prediction.
template <typename T>
T box_iou(IouKind kind, const Box<T>& a, const Box<T>& b);

/// What the reference uses as gradient of the box loss with respect to the predicted box (ascent
/// direction, 12.6): w and h twice the derivative, the distance term of x and y with one sign
/// turned. Not finite for some degenerate boxes; the caller replaces what is not finite by 0.
template <typename T>
BoxVector<T> reference_iou_gradient(IouKind kind, const Box<T>& predicted, const Box<T>& truth);

/// The value whose derivative `exact_iou_gradient` is: box_iou of the kind, except that diou takes
/// the distance term to the power 1 as in the DIoU loss (0.6 belongs to suppression, and has no
/// finite second derivative at 0).
template <typename T>
T iou_objective(IouKind kind, const Box<T>& predicted, const Box<T>& truth);

/// d iou_objective / d (x, y, w, h) of the prediction, alpha of ciou differentiated too. One-sided
/// at the kinks (equal edges).
template <typename T>
BoxVector<T> exact_iou_gradient(IouKind kind, const Box<T>& predicted, const Box<T>& truth);

}  // namespace lantern::ops
