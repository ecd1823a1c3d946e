#include <algorithm>

#include "layers/class_files.hpp"
#include "layers/lower_context.hpp"
#include "ops/contrastive/contrastive.hpp"
#include "ops/detection/detection.hpp"
#include "ops/gaussian_yolo/gaussian_yolo.hpp"
#include "ops/region/region.hpp"
#include "ops/yolo_loss/yolo_op.hpp"

namespace lantern::layers {

using graph::Role;
using graph::TensorId;

namespace {

ops::IouKind kind_of(IouLoss loss) {
  switch (loss) {
    case IouLoss::kIou:
      return ops::IouKind::kIou;
    case IouLoss::kGiou:
      return ops::IouKind::kGiou;
    case IouLoss::kMse:
      return ops::IouKind::kMse;
    case IouLoss::kDiou:
      return ops::IouKind::kDiou;
    case IouLoss::kCiou:
      return ops::IouKind::kCiou;
  }
  return ops::IouKind::kIou;
}

// What [yolo] and [Gaussian_yolo] share.
ops::YoloParams head_params(const Network& network, const Layer& layer, const HeadSpec& spec) {
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
  p.cls_normalizer_all = spec.cls_normalizer_all != 0;
  p.exact_iou_gradient = spec.iou_grad == IouGrad::kExact;
  p.class_map = read_class_map(layer, spec.map);
  p.net_w = network.net.width;
  p.net_h = network.net.height;
  p.grid_w = layer.out.w;
  p.grid_h = layer.out.h;
  return p;
}

ops::YoloParams yolo_params(const Network& network, const Layer& layer, const YoloSpec& spec) {
  ops::YoloParams p = head_params(network, layer, spec);
  p.focal_loss = spec.focal_loss != 0;
  p.new_coords = spec.new_coords != 0;
  p.show_details = spec.show_details != 0;
  return p;
}

// A head whose loss gives outputs, delta and a double an image.
void lower_head(LowerContext& context, const Layer& layer, const graph::OpDef& forward,
                const graph::OpDef& loss, std::shared_ptr<const graph::OpParams> params,
                const std::string& what) {
  const TensorId raw = context.previous(layer);
  if (!context.training()) {
    context.set_output(
        layer.index, context.add(forward, std::move(params), {raw}, layer, what, Role::kOutput)[0]);
    return;
  }
  const TensorId truth = context.truth(layer, std::int64_t{truth_rows(context.network())} * 6);
  const auto outputs = context.add(loss, std::move(params), {raw, truth}, layer, what);
  context.graph().set_role(outputs[2], Role::kOutput);
  context.set_output(layer.index, outputs[0]);
  context.lowered().losses.push_back({.layer = layer.index,
                                      .yolo = std::nullopt,
                                      .cost = outputs[2],
                                      .output = outputs[0],
                                      .delta = outputs[1],
                                      .truth = truth});
}

}  // namespace

// Every head reads the truth that the loader makes for the last one, so the row count is the last
// head's.
int truth_rows(const Network& network) {
  int rows = 200;
  for (const Layer& layer : network.layers) {
    if (const std::optional<DetectionKeys> keys = detection_keys(layer)) rows = keys->max;
  }
  return rows;
}

void lower_yolo(LowerContext& context, const Layer& layer, const YoloSpec& spec) {
  ops::YoloParams yolo = yolo_params(context.network(), layer, spec);
  auto params = std::make_shared<const ops::YoloOpParams>(yolo);
  const TensorId raw = context.previous(layer);
  if (!context.training()) {
    const TensorId output =
        context.add(ops::kYoloForward, params, {raw}, layer, "yolo", Role::kOutput)[0];
    context.set_output(layer.index, output);
    context.lowered().heads.push_back(
        {.layer = layer.index, .yolo = std::move(yolo), .output = output});
    return;
  }
  const TensorId truth = context.truth(layer, std::int64_t{yolo.max_truths} * 6);
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

void lower_gaussian_yolo(LowerContext& context, const Layer& layer, const GaussianYoloSpec& spec) {
  if (context.training() && spec.iou_grad == IouGrad::kExact) {
    refuse(layer, "iou_grad=exact is not supported here; [yolo] has it");
  }
  auto params = std::make_shared<ops::GaussianParams>();
  params->yolo = head_params(context.network(), layer, spec);
  params->uc_normalizer = spec.uc_normalizer;
  params->point = spec.yolo_point == YoloPoint::kCenter ? ops::GaussianParams::Point::kCenter
                  : spec.yolo_point == YoloPoint::kLeftTop
                      ? ops::GaussianParams::Point::kLeftTop
                      : ops::GaussianParams::Point::kRightBottom;
  lower_head(context, layer, ops::kGaussianForward, ops::kGaussianLoss, params, "gaussian");
  if (context.training()) return;
  context.lowered().heads.push_back(
      {.layer = layer.index, .output = context.output_of(layer.index), .gaussian = params});
}

void lower_region(LowerContext& context, const Layer& layer, const RegionSpec& spec) {
  auto params = std::make_shared<ops::RegionParams>();
  params->classes = spec.classes;
  params->coords = spec.coords;
  params->tree = read_word_tree(layer, spec.tree, spec.classes);
  params->anchors = spec.anchors;
  params->max_truths = truth_rows(context.network());
  params->softmax = spec.softmax != 0;
  params->rescore = spec.rescore != 0;
  params->bias_match = spec.bias_match != 0;
  params->classfix = spec.classfix;
  params->focal_loss = spec.focal_loss != 0;
  params->thresh = spec.thresh;
  params->coord_scale = spec.coord_scale;
  params->object_scale = spec.object_scale;
  params->noobject_scale = spec.noobject_scale;
  params->class_scale = spec.class_scale;
  params->class_map = read_class_map(layer, spec.map);
  params->grid_w = layer.out.w;
  params->grid_h = layer.out.h;
  lower_head(context, layer, ops::kRegionForward, ops::kRegionLoss, params, "region");
  if (context.training()) return;
  context.lowered().heads.push_back(
      {.layer = layer.index, .output = context.output_of(layer.index), .region = params});
}

void lower_contrastive(LowerContext& context, const Layer& layer, const ContrastiveSpec& spec) {
  const TensorId x = context.previous(layer);
  if (!context.training()) {
    context.set_output(layer.index, x);  // another name for the same map
    return;
  }
  const Network& network = context.network();
  auto params = std::make_shared<ops::ContrastiveParams>();
  if (spec.yolo_layer) {
    const Layer& head = network.layers[static_cast<std::size_t>(layer.sources.front())];
    const auto& yolo = std::get<YoloSpec>(head.spec);
    params->yolo = yolo_params(network, head, yolo);
    if (yolo.embedding_layer) {
      const Layer& embedding = network.layers[static_cast<std::size_t>(head.sources.front())];
      if (embedding.out.c != layer.in.c) {
        refuse(
            layer,
            "its input has {} channels, but embedding_layer of the [yolo] at {} is layer {} with "
            "{} filters; they must be equal",
            layer.in.c, head.where, embedding.index, embedding.out.c);
      }
    }
  }
  params->classes = spec.classes;
  params->label_threshold = network.net.label_smooth_eps;
  params->temperature = spec.temperature;
  params->cls_normalizer = spec.cls_normalizer;
  params->max_delta = spec.max_delta;
  params->negatives = spec.contrastive_neg_max;
  params->step_images = std::max<std::int64_t>(1, context.images() / network.net.time_steps);
  const TensorId truth = context.truth(layer, params->truth_floats());
  const auto outputs =
      context.add(ops::kContrastiveLoss, std::move(params), {x, truth}, layer, "contrastive");
  context.graph().set_role(outputs[2], Role::kOutput);
  context.set_output(layer.index, outputs[0]);
  context.lowered().losses.push_back({.layer = layer.index,
                                      .yolo = std::nullopt,
                                      .cost = outputs[2],
                                      .output = outputs[0],
                                      .delta = outputs[1],
                                      .truth = truth});
}

void lower_detection(LowerContext& context, const Layer& layer, const DetectionSpec& spec) {
  if (spec.coords != 4) refuse(layer, "coords={} is not supported: a box has 4", spec.coords);
  auto params = std::make_shared<ops::DetectionParams>();
  params->classes = spec.classes;
  params->boxes = spec.num;
  params->side = spec.side;
  params->max_truths = truth_rows(context.network());
  params->softmax = spec.softmax != 0;
  params->sqrt = spec.sqrt != 0;
  params->rescore = spec.rescore != 0;
  params->forced = spec.forced != 0;
  params->random = spec.random != 0;
  params->coord_scale = spec.coord_scale;
  params->object_scale = spec.object_scale;
  params->noobject_scale = spec.noobject_scale;
  params->class_scale = spec.class_scale;
  params->layer = layer.index;
  lower_head(context, layer, ops::kDetectionForward, ops::kDetectionLoss, params, "detection");
  if (context.training()) return;
  context.lowered().heads.push_back(
      {.layer = layer.index, .output = context.output_of(layer.index), .detection = params});
}

}  // namespace lantern::layers
