#include <fmt/format.h>

#include <algorithm>

#include "ops/yolo_loss/yolo_loss.hpp"

namespace lantern::ops {

std::vector<float> yolo_class_multipliers(const YoloParams& params) {
  const auto& counters = params.counters_per_class;
  std::vector<float> multipliers(counters.size());
  if (counters.empty()) return multipliers;
  const int highest = std::max(1, *std::max_element(counters.begin(), counters.end()));
  std::transform(counters.begin(), counters.end(), multipliers.begin(), [&](int counter) {
    const float m = static_cast<float>(highest) / static_cast<float>(std::max(1, counter));
    return std::min(m, params.max_delta);
  });
  return multipliers;
}

YoloStats combine(std::span<const YoloImageStats> images) {
  YoloStats sum;
  for (const YoloImageStats& s : images) {
    sum.delta_squares += s.delta_squares;
    sum.box_squares += s.box_squares;
    sum.non_box_squares += s.non_box_squares;
    sum.objectness_squares += s.objectness_squares;
    sum.class_squares += s.class_squares;
    sum.iou += s.iou;
    sum.giou += s.giou;
    sum.class_probability += s.class_probability;
    sum.objectness_positive += s.objectness_positive;
    sum.objectness_all += s.objectness_all;
    sum.cells += s.cells;
    sum.count += s.count;
    sum.recall50 += s.recall50;
    sum.recall75 += s.recall75;
    sum.total_bbox += s.total_bbox;
    sum.rewritten_bbox += s.rewritten_bbox;
  }
  sum.images = static_cast<std::int64_t>(images.size());
  return sum;
}

double yolo_cost(const YoloParams& params, const YoloStats& stats) {
  if (params.iou_loss == IouKind::kMse || !params.show_details) return stats.delta_squares;
  const double matched = params.iou_loss == IouKind::kGiou ? stats.giou : stats.iou;
  const double mean_loss = stats.count > 0 ? 1.0 - matched / static_cast<double>(stats.count) : 0.0;
  return params.iou_normalizer * mean_loss + params.obj_normalizer * stats.non_box_squares;
}

std::string yolo_console_line(const YoloParams& params, const YoloStats& stats, int layer_index) {
  const char* kind = "iou";  // diou and ciou too
  if (params.iou_loss == IouKind::kMse) kind = "mse";
  if (params.iou_loss == IouKind::kGiou) kind = "giou";
  const double images = static_cast<double>(std::max<std::int64_t>(1, stats.images));
  const double total = stats.delta_squares / images;
  const double class_loss = params.obj_normalizer * stats.non_box_squares / images;
  std::string line = fmt::format(
      "v3 ({} loss, Normalizer: (iou: {:.2f}, obj: {:.2f}, cls: {:.2f}) Region {} Avg (IOU: {:f}), "
      "count: {}, ",
      kind, params.iou_normalizer, params.obj_normalizer, params.cls_normalizer, layer_index,
      stats.mean_iou(), stats.count);
  if (params.show_details) {
    line += fmt::format("class_loss = {:f}, iou_loss = {:f}, ", class_loss, total - class_loss);
  }
  return line + fmt::format("total_loss = {:f}", total);
}

std::string yolo_bbox_line(std::int64_t total_bbox, std::int64_t rewritten_bbox) {
  const double share =
      total_bbox > 0 ? 100.0 * static_cast<double>(rewritten_bbox) / static_cast<double>(total_bbox)
                     : 0.0;
  return fmt::format(" total_bbox = {}, rewritten_bbox = {:f} %", total_bbox, share);
}

}  // namespace lantern::ops
