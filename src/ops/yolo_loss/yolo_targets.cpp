#include <algorithm>
#include <cmath>

#include "ops/yolo_loss/yolo_view.hpp"

namespace lantern::ops::yolo_detail {
namespace {

template <typename T>
BoxVector<T> mse_delta(const ImageView<T>& view, int anchor, std::int64_t cell,
                       const Truth<T>& truth) {
  const YoloParams& p = view.params;
  const std::int64_t cells = view.cells;
  const T* o = view.out + view.plane(anchor, 0) + cell;
  const Box<T>& b = truth.box;
  const T scale = (2 - b.w * b.h) * static_cast<T>(p.iou_normalizer) * truth.multiplier;
  const T rel_w = b.w / view.anchor_w(view.mask(anchor));
  const T rel_h = b.h / view.anchor_h(view.mask(anchor));
  const T target_w = p.new_coords ? std::sqrt(rel_w / 4) : std::log(rel_w);
  const T target_h = p.new_coords ? std::sqrt(rel_h / 4) : std::log(rel_h);
  const T target_x = b.x * static_cast<T>(p.grid_w) - static_cast<T>(cell % p.grid_w);
  const T target_y = b.y * static_cast<T>(p.grid_h) - static_cast<T>(cell / p.grid_w);
  return {scale * (target_x - o[0]), scale * (target_y - o[cells]),
          scale * (target_w - o[2 * cells]), scale * (target_h - o[3 * cells])};
}

// The chain rule stops at the box, except for e^t of w and h.
template <typename T>
BoxVector<T> reference_delta(const ImageView<T>& view, int anchor, std::int64_t cell,
                             const Truth<T>& truth) {
  const YoloParams& p = view.params;
  const std::int64_t cells = view.cells;
  const T* o = view.out + view.plane(anchor, 0) + cell;
  Box<T> box = view.predicted(anchor, cell);
  if (box.w == 0) box.w = 1;
  if (box.h == 0) box.h = 1;
  const BoxVector<T> g = reference_iou_gradient(p.iou_loss, box, truth.box);
  const T norm = static_cast<T>(p.iou_normalizer) * truth.multiplier;
  const T e_w = p.new_coords ? T(1) : std::exp(o[2 * cells]);
  const T e_h = p.new_coords ? T(1) : std::exp(o[3 * cells]);
  return {norm * g.x, norm * g.y, norm * (g.w * e_w), norm * (g.h * e_h)};
}

// iou_grad=exact: gradient of m * iou_norm * iou_objective with respect to the layer's input t,
//   new_coords=0: x = (i + s sigma(t) - (s - 1) / 2) / lw, dx/dt = s sigma (1 - sigma) / lw;
//                 w = e^t aw, dw/dt = w
//   new_coords=1: x = (i + s t - (s - 1) / 2) / lw, dx/dt = s / lw;  w = 4 t^2 aw, dw/dt = 8 t aw
template <typename T>
BoxVector<T> exact_delta(const ImageView<T>& view, int anchor, std::int64_t cell,
                         const Truth<T>& truth) {
  const YoloParams& p = view.params;
  const std::int64_t cells = view.cells;
  const T* o = view.out + view.plane(anchor, 0) + cell;
  const Box<T> box = view.predicted(anchor, cell);
  const BoxVector<T> g = exact_iou_gradient(p.iou_loss, box, truth.box);
  const T norm = static_cast<T>(p.iou_normalizer) * truth.multiplier;
  const T s = static_cast<T>(p.scale_x_y);
  const auto slope = [&](T scaled) {
    if (p.new_coords) return s;
    const T sigma = (scaled + (s - 1) / 2) / s;
    return s * sigma * (1 - sigma);
  };
  const T d_w = p.new_coords ? 8 * o[2 * cells] * view.anchor_w(view.mask(anchor)) : box.w;
  const T d_h = p.new_coords ? 8 * o[3 * cells] * view.anchor_h(view.mask(anchor)) : box.h;
  return {norm * g.x * slope(o[0]) / static_cast<T>(p.grid_w),
          norm * g.y * slope(o[cells]) / static_cast<T>(p.grid_h), norm * g.w * d_w,
          norm * g.h * d_h};
}

}  // namespace

template <typename T>
bool add_box_delta(const ImageView<T>& view, int anchor, std::int64_t cell, const Truth<T>& truth) {
  const YoloParams& p = view.params;
  const std::int64_t cells = view.cells;
  T* d = view.delta + view.plane(anchor, 0) + cell;
  const bool rewritten = d[0] != 0 || d[cells] != 0 || d[2 * cells] != 0 || d[3 * cells] != 0;
  BoxVector<T> v;
  if (p.iou_loss == IouKind::kMse) {
    v = mse_delta(view, anchor, cell, truth);
  } else {
    v = p.exact_iou_gradient ? exact_delta(view, anchor, cell, truth)
                             : reference_delta(view, anchor, cell, truth);
    const T limit = static_cast<T>(p.max_delta);
    const auto bounded = [limit](T g) {
      return std::max(-limit, std::min(limit, finite_or_zero(g)));
    };
    v = {bounded(v.x), bounded(v.y), bounded(v.w), bounded(v.h)};
  }
  d[0] += v.x;
  d[cells] += v.y;
  d[2 * cells] += v.w;
  d[3 * cells] += v.h;
  return rewritten;
}

template <typename T>
void set_class_delta(const ImageView<T>& view, int anchor, std::int64_t cell,
                     const Truth<T>& truth) {
  const YoloParams& params = view.params;
  const std::int64_t cells = view.cells;
  const T* p = view.out + view.plane(anchor, 5) + cell;
  T* d = view.delta + view.plane(anchor, 5) + cell;
  const std::int64_t at = truth.class_id * cells;
  const T smooth = static_cast<T>(params.label_smooth_eps);
  const T factor = all_classes_factor<T>(params);
  if (d[at] != 0) {  // a second truth here: only its own class, the others keep what they have
    const T result = 1 - smooth + smooth / 2 - p[at];
    if (std::isfinite(result)) d[at] = result * truth.multiplier * factor;
    return;
  }
  if (params.focal_loss) {
    const T pt = p[at] + T(1e-15);
    const T g = -(1 - pt) * (2 * pt * std::log(pt) + pt - 1);
    for (int k = 0; k < params.classes; ++k) {
      const T label = k == truth.class_id ? T(1) : T(0);
      d[k * cells] = (label - p[k * cells]) * (g / 2) * factor;
    }
    return;
  }
  for (int k = 0; k < params.classes; ++k) {
    const T label = (k == truth.class_id ? 1 - smooth : T(0)) + smooth / 2;
    const T result = label - p[k * cells];
    if (std::isfinite(result)) d[k * cells] = result * factor;
  }
  if (!params.counters_per_class.empty()) {
    d[at] *= truth.multiplier *
             (params.cls_normalizer_all ? T(1) : static_cast<T>(params.cls_normalizer));
  }
}

#define LANTERN_INSTANTIATE(T)                                                          \
  template bool add_box_delta(const ImageView<T>&, int, std::int64_t, const Truth<T>&); \
  template void set_class_delta(const ImageView<T>&, int, std::int64_t, const Truth<T>&);
LANTERN_INSTANTIATE(float)
LANTERN_INSTANTIATE(double)
#undef LANTERN_INSTANTIATE

}  // namespace lantern::ops::yolo_detail
