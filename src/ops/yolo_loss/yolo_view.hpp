#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ops/yolo_loss/yolo_loss.hpp"

/// Parts of `yolo_delta` that its files share; not for other folders.
namespace lantern::ops::yolo_detail {

/// One valid truth: its edges are computed once, step 1 reads them for every cell.
template <typename T>
struct Truth {
  T left, right, top, bottom, area;
  Box<T> box;
  int class_id;  // after the class map
  T multiplier;  // of its class, 12.3
};

template <typename T>
T finite_or_zero(T v) {
  return std::isfinite(v) ? v : T(0);
}

/// One image's activated planes and deltas.
template <typename T>
struct ImageView {
  const YoloParams& params;
  const T* out;
  T* delta;
  std::int64_t cells = params.grid_w * params.grid_h;

  /// Offset of an entry's plane of one anchor.
  std::int64_t plane(int anchor, int entry) const {
    return (static_cast<std::int64_t>(anchor) * params.entries() + entry) * cells;
  }
  /// Size of anchor `index` of all pairs, relative to the network input.
  T anchor_w(int index) const {
    return static_cast<T>(params.anchors[2 * static_cast<std::size_t>(index)]) /
           static_cast<T>(params.net_w);
  }
  T anchor_h(int index) const {
    return static_cast<T>(params.anchors[2 * static_cast<std::size_t>(index) + 1]) /
           static_cast<T>(params.net_h);
  }
  /// Index among all pairs of this layer's anchor, and back (-1: not in the mask).
  int mask(int anchor) const { return params.mask[static_cast<std::size_t>(anchor)]; }
  int anchor_of(int index) const {
    const auto at = std::find(params.mask.begin(), params.mask.end(), index);
    return at == params.mask.end() ? -1 : static_cast<int>(at - params.mask.begin());
  }
  /// For images with a valid truth only: there an objectness that is not finite counts as 0.
  T objectness(int anchor, std::int64_t cell) const {
    return finite_or_zero(out[plane(anchor, 4) + cell]);
  }
  Box<T> predicted(int anchor, std::int64_t cell) const {
    const T* o = out + plane(anchor, 0) + cell;
    const T aw = anchor_w(mask(anchor));
    const T ah = anchor_h(mask(anchor));
    const T tw = o[2 * cells];
    const T th = o[3 * cells];
    return {.x = (static_cast<T>(cell % params.grid_w) + o[0]) / static_cast<T>(params.grid_w),
            .y = (static_cast<T>(cell / params.grid_w) + o[cells]) / static_cast<T>(params.grid_h),
            .w = params.new_coords ? 4 * tw * tw * aw : std::exp(tw) * aw,
            .h = params.new_coords ? 4 * th * th * ah : std::exp(th) * ah};
  }
};

/// Adds the box delta toward a truth (12.4). True when one of the four deltas was already set.
template <typename T>
bool add_box_delta(const ImageView<T>& view, int anchor, std::int64_t cell, const Truth<T>& truth);

/// Sets the class deltas for a truth (12.5).
template <typename T>
void set_class_delta(const ImageView<T>& view, int anchor, std::int64_t cell,
                     const Truth<T>& truth);

/// cls_normalizer_all=1: the normalizer on every class delta, in place of the reference's single
/// use of it.
template <typename T>
T all_classes_factor(const YoloParams& params) {
  return params.cls_normalizer_all ? static_cast<T>(params.cls_normalizer) : T(1);
}

}  // namespace lantern::ops::yolo_detail
