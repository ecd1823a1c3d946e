#include "eval/inference.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "ops/detection/detection.hpp"
#include "ops/gaussian_yolo/gaussian_yolo.hpp"
#include "ops/region/region.hpp"

namespace lantern::eval {

namespace {

void set_anchors(YoloHead& head, const std::vector<float>& flat) {
  for (std::size_t i = 0; i + 1 < flat.size(); i += 2)
    head.anchors.emplace_back(flat[i], flat[i + 1]);
}

YoloHead::Point point_of(ops::GaussianParams::Point point) {
  switch (point) {
    case ops::GaussianParams::Point::kCenter:
      return YoloHead::Point::kCenter;
    case ops::GaussianParams::Point::kLeftTop:
      return YoloHead::Point::kLeftTop;
    case ops::GaussianParams::Point::kRightBottom:
      return YoloHead::Point::kRightBottom;
  }
  return YoloHead::Point::kCenter;
}

YoloHead head_of(const layers::HeadBinding& binding) {
  if (binding.region) {
    const ops::RegionParams& region = *binding.region;
    YoloHead head{.kind = YoloHead::Kind::kRegion,
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
    return {.kind = YoloHead::Kind::kDetection,
            .classes = detection.classes,
            .grid_w = static_cast<int>(detection.side),
            .grid_h = static_cast<int>(detection.side),
            .boxes_per_cell = detection.boxes,
            .sqrt_size = detection.sqrt};
  }
  const ops::YoloParams& params = binding.gaussian ? binding.gaussian->yolo : binding.yolo;
  YoloHead head{.kind = binding.gaussian ? YoloHead::Kind::kGaussianYolo : YoloHead::Kind::kYolo,
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
NmsKind nms_kind_of(layers::NmsKind kind) {
  switch (kind) {
    case layers::NmsKind::kDefault:
      return NmsKind::kDefault;
    case layers::NmsKind::kGreedy:
      return NmsKind::kGreedy;
    case layers::NmsKind::kDiou:
      return NmsKind::kDiou;
    case layers::NmsKind::kCorners:
      return NmsKind::kCorners;
  }
  return NmsKind::kDefault;
}

}  // namespace

Inference::Inference(exec::Model& model) : model_(model), batch_(model.options().forward_batch) {
  LANTERN_ASSERT(model.lowered().forward_images.has_value(), "inference needs a forward program");
  const layers::Network& network = model.network();
  for (const layers::HeadBinding& binding : model.lowered().heads) {
    Head head{.head = head_of(binding), .output = binding.output};
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

void Inference::run(std::span<const float> images, std::int64_t count, Outputs& outputs) {
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
  outputs.resize(heads_.size());
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const Shape& shape = model_.lowered().graph.type(heads_[i].output).shape;
    outputs[i].resize(static_cast<std::size_t>(shape.elements()));
    model_.executor().read(heads_[i].output, outputs[i]);
  }
}

DetectionList Inference::detections(const Outputs& outputs, std::int64_t image,
                                    const Options& options) const {
  LANTERN_ASSERT(outputs.size() == heads_.size(), "the outputs of a run");
  LANTERN_ASSERT(image >= 0 && image < batch_, "a picture of the last run");
  DetectionList list(classes_);
  DecodeOptions decoding{.net_w = model_.network().net.width,
                         .net_h = model_.network().net.height,
                         .threshold = options.threshold,
                         .letterboxed_image = options.letterboxed_image};
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const std::size_t one = outputs[i].size() / static_cast<std::size_t>(batch_);
    decode(heads_[i].head,
           std::span(outputs[i]).subspan(static_cast<std::size_t>(image) * one, one), decoding,
           list);
    ++decoding.head;
  }
  if (options.suppress) {
    NmsOptions nms = nms_;
    nms.threshold = options.nms_threshold;
    if (options.nms_kind) nms.kind = *options.nms_kind;
    suppress(list, nms);
  }
  return list;
}

}  // namespace lantern::eval
