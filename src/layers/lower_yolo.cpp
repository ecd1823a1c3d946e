#include "core/file.hpp"
#include "core/text.hpp"
#include "layers/lower_context.hpp"
#include "ops/yolo_loss/yolo_op.hpp"

namespace lantern::layers {

using graph::Role;
using graph::TensorId;

namespace {

ops::IouKind kind_of(IouLoss loss) {
  switch (loss) {
    case IouLoss::kIou: return ops::IouKind::kIou;
    case IouLoss::kGiou: return ops::IouKind::kGiou;
    case IouLoss::kMse: return ops::IouKind::kMse;
    case IouLoss::kDiou: return ops::IouKind::kDiou;
    case IouLoss::kCiou: return ops::IouKind::kCiou;
  }
  return ops::IouKind::kIou;
}

std::vector<int> read_class_map(const Layer& layer, const std::string& path) {
  if (path.empty()) return {};
  std::vector<int> map;
  const std::string text = read_file(path, 1_MiB);
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    const std::optional<std::int64_t> value = parse_int(trim(line));
    if (!value) refuse(layer, "map={}: '{}' is no class index", path, trim(line));
    map.push_back(static_cast<int>(*value));
  }
  return map;
}

// Every head reads the truth that the loader makes for the last one, so the row count is the last head's.
int truth_rows(const Network& network) {
  int rows = 200;
  for (const Layer& layer : network.layers) {
    if (const auto* yolo = std::get_if<YoloSpec>(&layer.spec)) rows = yolo->max;
  }
  return rows;
}

ops::YoloParams yolo_params(const Network& network, const Layer& layer, const YoloSpec& spec) {
  ops::YoloParams p;
  p.classes = spec.classes;
  p.anchors = spec.anchors;
  p.mask = spec.mask;
  p.max_truths = truth_rows(network);
  p.ignore_thresh = spec.ignore_thresh;
  p.truth_thresh = spec.truth_thresh;
  p.iou_thresh = spec.iou_thresh;
  p.iou_thresh_kind = kind_of(spec.iou_thresh_kind);
  p.iou_loss = kind_of(spec.iou_loss);
  p.iou_normalizer = spec.iou_normalizer;
  p.obj_normalizer = spec.obj_normalizer;
  p.cls_normalizer = spec.cls_normalizer;
  p.delta_normalizer = spec.delta_normalizer;
  p.max_delta = spec.max_delta;
  p.counters_per_class = spec.counters_per_class;
  p.label_smooth_eps = spec.label_smooth_eps;
  p.objectness_smooth = spec.objectness_smooth != 0;
  p.scale_x_y = spec.scale_x_y;
  p.focal_loss = spec.focal_loss != 0;
  p.new_coords = spec.new_coords != 0;
  p.show_details = spec.show_details != 0;
  p.cls_normalizer_all = spec.cls_normalizer_all != 0;
  p.exact_iou_gradient = spec.iou_grad == IouGrad::kExact;
  p.class_map = read_class_map(layer, spec.map);
  p.net_w = network.net.width;
  p.net_h = network.net.height;
  p.grid_w = layer.out.w;
  p.grid_h = layer.out.h;
  return p;
}

}  // namespace

void lower_yolo(LowerContext& context, const Layer& layer, const YoloSpec& spec) {
  ops::YoloParams yolo = yolo_params(context.network(), layer, spec);
  auto params = std::make_shared<const ops::YoloOpParams>(yolo);
  const TensorId raw = context.previous(layer);
  if (!context.training()) {
    const TensorId output = context.add(ops::kYoloForward, params, {raw}, layer, "yolo", Role::kOutput)[0];
    context.set_output(layer.index, output);
    context.lowered().heads.push_back({.layer = layer.index, .yolo = std::move(yolo), .output = output});
    return;
  }
  if (spec.embedding_layer) refuse(layer, "embedding_layer is not supported by this version");
  if (yolo.delta_normalizer != 1) refuse(layer, "delta_normalizer is not supported by this version; remove the key");
  const TensorId truth = context.truth(std::int64_t{yolo.max_truths} * 6);
  const auto outputs = context.add(ops::kYoloLoss, params, {raw, truth}, layer, "yolo");
  context.graph().set_role(outputs[2], Role::kOutput);
  context.set_output(layer.index, outputs[0]);
  context.lowered().losses.push_back({.layer = layer.index,
                                      .yolo = std::move(yolo),
                                      .cost = outputs[2],
                                      .output = outputs[0],
                                      .delta = outputs[1],
                                      .truth = truth});
}

}  // namespace lantern::layers
