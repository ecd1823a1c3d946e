#include <algorithm>
#include <cstdint>

#include "ops/yolo_loss/exp_approx.hpp"
#include "ops/yolo_loss/yolo_loss.hpp"

namespace lantern::ops {
namespace {

// `ivdep`: source and destination are the same memory or do not overlap, either way element by
// element.

template <typename T>
void logistic(const T* src, T* dst, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) dst[i] = logistic_approx(src[i]);
}

template <typename T>
void scale_shift(const T* src, T* dst, std::int64_t count, T scale, T shift) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) dst[i] = src[i] * scale + shift;
}

}  // namespace

std::int64_t yolo_image_size(const YoloParams& params) {
  return params.grid_w * params.grid_h * params.anchors_per_cell() * params.entries();
}

template <typename T>
void yolo_activate(const YoloParams& params, const T* raw, T* activated) {
  const std::int64_t plane = params.grid_w * params.grid_h;
  const std::int64_t anchor_size = plane * params.entries();
  const T scale = static_cast<T>(params.scale_x_y);
  const T shift = T(-0.5) * (scale - 1);
  for (int a = 0; a < params.anchors_per_cell(); ++a) {
    const T* src = raw + a * anchor_size;
    T* dst = activated + a * anchor_size;
    if (params.new_coords) {
      scale_shift(src, dst, 2 * plane, scale, shift);
      if (src != dst) std::copy(src + 2 * plane, src + anchor_size, dst + 2 * plane);
      continue;
    }
    logistic(src, dst, 2 * plane);
    if (scale != 1) scale_shift(dst, dst, 2 * plane, scale, shift);
    if (src != dst) std::copy(src + 2 * plane, src + 4 * plane, dst + 2 * plane);
    logistic(src + 4 * plane, dst + 4 * plane, anchor_size - 4 * plane);
  }
}

template void yolo_activate(const YoloParams&, const float*, float*);
template void yolo_activate(const YoloParams&, const double*, double*);

}  // namespace lantern::ops
