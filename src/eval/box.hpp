#pragma once

namespace lantern::eval {

/// Centre and size; the unit is the caller's (relative to the image, or pixels).
struct Box {
  float x = 0, y = 0, w = 0, h = 0;
  float left() const { return x - w / 2; }
  float right() const { return x + w / 2; }
  float top() const { return y - h / 2; }
  float bottom() const { return y + h / 2; }
  bool operator==(const Box&) const = default;
};

/// Area of the intersection over area of the union; 0 when either is 0.
float iou(const Box& a, const Box& b);
/// IoU - (C - U)/C with C the enclosing area (Rezatofighi et al. 2019); iou when C is 0.
float giou(const Box& a, const Box& b);
/// IoU - (S/D)^exponent: S squared centre distance, D squared diagonal of the enclosing box
/// (Zheng et al. 2020); iou when D is 0. Darknet's metric raises to 0.6, its `diounms` to beta_nms.
float diou(const Box& a, const Box& b, float exponent = 0.6F);
/// IoU - (S/D + alpha v), v the squared difference of the aspect angles; b is the truth.
float ciou(const Box& a, const Box& b);

}  // namespace lantern::eval
