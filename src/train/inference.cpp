#include "train/inference.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "ops/detection/detection.hpp"
#include "ops/gaussian_yolo/gaussian_yolo.hpp"
#include "ops/region/region.hpp"

namespace lantern::train {

namespace {

void set_anchors(eval::YoloHead& head, const std::vector<float>& flat) {
  for (std::size_t i = 0; i + 1 < flat.size(); i += 2)
    head.anchors.emplace_back(flat[i], flat[i + 1]);
}

eval::YoloHead::Point point_of(ops::GaussianParams::Point point) {
  switch (point) {
    case ops::GaussianParams::Point::kCenter:
      return eval::YoloHead::Point::kCenter;
    case ops::GaussianParams::Point::kLeftTop:
      return eval::YoloHead::Point::kLeftTop;
    case ops::GaussianParams::Point::kRightBottom:
      return eval::YoloHead::Point::kRightBottom;
  }
  return eval::YoloHead::Point::kCenter;
}

eval::YoloHead head_of(const layers::HeadBinding& binding) {
  if (binding.region) {
    const ops::RegionParams& region = *binding.region;
    eval::YoloHead head{.kind = eval::YoloHead::Kind::kRegion,
                        .classes = region.classes,
                        .coords = region.coords,
                        .grid_w = static_cast<int>(region.grid_w),
                        .grid_h = static_cast<int>(region.grid_h)};
    set_anchors(head, region.anchors);
    if (region.tree) head.tree_parents = region.tree->parents;
    return head;
  }
  if (binding.detection) {
    const ops::DetectionParams& detection = *binding.detection;
    return {.kind = eval::YoloHead::Kind::kDetection,
            .classes = detection.classes,
            .grid_w = static_cast<int>(detection.side),
            .grid_h = static_cast<int>(detection.side),
            .boxes_per_cell = detection.boxes,
            .sqrt_size = detection.sqrt};
  }
  const ops::YoloParams& params = binding.gaussian ? binding.gaussian->yolo : binding.yolo;
  eval::YoloHead head{
      .kind = binding.gaussian ? eval::YoloHead::Kind::kGaussianYolo : eval::YoloHead::Kind::kYolo,
      .classes = params.classes,
      .mask = params.mask,
      .grid_w = static_cast<int>(params.grid_w),
      .grid_h = static_cast<int>(params.grid_h),
      .new_coords = params.new_coords};
  if (binding.gaussian) head.point = point_of(binding.gaussian->point);
  set_anchors(head, params.anchors);
  return head;
}

// The two enums stand in folders that do not see each other; their values are spelled alike.
eval::NmsKind nms_kind_of(layers::NmsKind kind) {
  switch (kind) {
    case layers::NmsKind::kDefault:
      return eval::NmsKind::kDefault;
    case layers::NmsKind::kGreedy:
      return eval::NmsKind::kGreedy;
    case layers::NmsKind::kDiou:
      return eval::NmsKind::kDiou;
    case layers::NmsKind::kCorners:
      return eval::NmsKind::kCorners;
  }
  return eval::NmsKind::kDefault;
}

}  // namespace

Inference::Inference(exec::Model& model) : model_(model), batch_(model.options().forward_batch) {
  LANTERN_ASSERT(model.lowered().forward_images.has_value(), "inference needs a forward program");
  const layers::Network& network = model.network();
  for (const layers::HeadBinding& binding : model.lowered().heads) {
    Head head{.head = head_of(binding), .output = binding.output};
    head.values.resize(
        static_cast<std::size_t>(model.lowered().graph.type(binding.output).shape.elements()));
    const layers::Layer& layer = network.layers[static_cast<std::size_t>(binding.layer)];
    if (classes_ != 0 && head.head.classes != classes_) {
      throw Error(ErrorCode::kInvalidConfig, layer.where,
                  "error: [{}] has classes={}, the detection layer before it {}; all must agree",
                  layer.section, head.head.classes, classes_);
    }
    classes_ = head.head.classes;
    const layers::HeadSpec* spec = std::get_if<layers::YoloSpec>(&layer.spec);
    if (spec == nullptr) spec = std::get_if<layers::GaussianYoloSpec>(&layer.spec);
    if (spec != nullptr) {
      nms_.kind = nms_kind_of(spec->nms_kind);
      nms_.beta = spec->beta_nms;
    }
    heads_.push_back(std::move(head));
  }
  if (heads_.empty()) {
    throw Error(ErrorCode::kInvalidConfig, network.path,
                "error: the cfg has no detection layer ([yolo], [Gaussian_yolo], [region], "
                "[detection]); this verb needs one");
  }
}

void Inference::run(std::span<const float> images, std::int64_t count) {
  LANTERN_ASSERT(count >= 1 && count <= batch_, "a run holds 1 to batch pictures");
  if (count == batch_) {
    model_.forward(images);
  } else {
    const std::size_t one = images.size() / static_cast<std::size_t>(count);
    padded_.resize(one * static_cast<std::size_t>(batch_));
    const auto end = std::ranges::copy(images, padded_.begin()).out;
    std::fill(end, padded_.end(), 0.0F);
    model_.forward(padded_);
  }
  for (Head& head : heads_) model_.executor().read(head.output, head.values);
}

eval::DetectionList Inference::detections(std::int64_t image, const Options& options) const {
  LANTERN_ASSERT(image >= 0 && image < batch_, "a picture of the last run");
  eval::DetectionList list(classes_);
  eval::DecodeOptions decoding{.net_w = model_.network().net.width,
                               .net_h = model_.network().net.height,
                               .threshold = options.threshold,
                               .letterboxed_image = options.letterboxed_image};
  for (const Head& head : heads_) {
    const std::size_t one = head.values.size() / static_cast<std::size_t>(batch_);
    eval::decode(head.head,
                 std::span(head.values).subspan(static_cast<std::size_t>(image) * one, one),
                 decoding, list);
    ++decoding.head;
  }
  if (options.suppress) {
    eval::NmsOptions nms = nms_;
    nms.threshold = options.nms_threshold;
    eval::suppress(list, nms);
  }
  return list;
}

}  // namespace lantern::train
