#include "ops/yolo_loss/yolo_place.hpp"

#include "ops/yolo_loss/yolo_view.hpp"

namespace lantern::ops {

std::optional<YoloPlace> yolo_place(const YoloParams& params, const float* row) {
  const std::optional<int> class_id = yolo_detail::class_of_row(params, row);
  if (!class_id) return std::nullopt;
  const yolo_detail::ImageView<float> view{params, nullptr, nullptr};
  const yolo_detail::Place place =
      yolo_detail::place_of(view, Box<float>{row[0], row[1], row[2], row[3]});
  const int anchor = view.anchor_of(place.best);
  if (anchor < 0) return std::nullopt;
  return YoloPlace{.anchor = anchor, .cell = place.cell, .class_id = *class_id};
}

}  // namespace lantern::ops
