#include "train/inference.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lantern::train {

namespace {

eval::YoloHead head_of(const ops::YoloParams& params) {
  eval::YoloHead head{.kind = eval::YoloHead::Kind::kYolo,
                      .classes = params.classes,
                      .mask = params.mask,
                      .grid_w = static_cast<int>(params.grid_w),
                      .grid_h = static_cast<int>(params.grid_h),
                      .new_coords = params.new_coords};
  for (std::size_t i = 0; i + 1 < params.anchors.size(); i += 2) {
    head.anchors.emplace_back(params.anchors[i], params.anchors[i + 1]);
  }
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
    Head head{.head = head_of(binding.yolo), .output = binding.output};
    head.values.resize(
        static_cast<std::size_t>(model.lowered().graph.type(binding.output).shape.elements()));
    const layers::Layer& layer = network.layers[static_cast<std::size_t>(binding.layer)];
    if (classes_ != 0 && head.head.classes != classes_) {
      throw Error(ErrorCode::kInvalidConfig, layer.where,
                  "error: [{}] has classes={}, the detection layer before it {}; all must agree",
                  layer.section, head.head.classes, classes_);
    }
    classes_ = head.head.classes;
    if (const auto* yolo = std::get_if<layers::YoloSpec>(&layer.spec)) {
      nms_.kind = nms_kind_of(yolo->nms_kind);
      nms_.beta = yolo->beta_nms;
    }
    heads_.push_back(std::move(head));
  }
  if (heads_.empty()) {
    throw Error(ErrorCode::kInvalidConfig, network.path,
                "error: the cfg has no detection layer ([yolo]); this verb needs one");
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
