#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

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

/// Cell of a truth, and the anchor of all pairs that has its shape best (12.3, step 2).
struct Place {
  int best = 0;
  std::int64_t cell = 0;
};
template <typename T>
Place place_of(const ImageView<T>& view, const Box<T>& truth) {
  const auto cell_of = [](T centre, std::int64_t extent) {
    const T at = centre * static_cast<T>(extent);
    if (!(at > 0)) return std::int64_t{0};
    return at >= static_cast<T>(extent) ? extent - 1 : static_cast<std::int64_t>(at);
  };
  const YoloParams& p = view.params;
  Place place;
  place.cell = cell_of(truth.y, p.grid_h) * p.grid_w + cell_of(truth.x, p.grid_w);
  T best_iou = 0;
  for (int k = 0; k < p.total_anchors(); ++k) {
    const T iou =
        box_iou(Box<T>{0, 0, view.anchor_w(k), view.anchor_h(k)}, Box<T>{0, 0, truth.w, truth.h});
    if (iou > best_iou) {
      best_iou = iou;
      place.best = k;
    }
  }
  return place;
}

/// Class of a truth row, after the class map; nothing when the row is passed over.
inline std::optional<int> class_of_row(const YoloParams& params, const float* row) {
  if (!std::all_of(row, row + 5, [](float v) { return std::isfinite(v); })) return std::nullopt;
  if (row[2] <= 0 || row[3] <= 0) return std::nullopt;
  if (row[4] <= -1 || row[4] >= static_cast<float>(params.classes)) return std::nullopt;
  const int class_id = static_cast<int>(row[4]);
  if (params.class_map.empty()) return class_id;
  if (static_cast<std::size_t>(class_id) >= params.class_map.size()) return std::nullopt;
  const int mapped = params.class_map[static_cast<std::size_t>(class_id)];
  if (mapped < 0 || mapped >= params.classes) return std::nullopt;
  return mapped;
}

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
