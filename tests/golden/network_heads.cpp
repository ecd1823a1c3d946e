#include "network_heads.hpp"

#include <span>
#include <variant>

namespace lantern::test {

namespace {

std::vector<std::pair<float, float>> pairs(const std::vector<float>& flat) {
  std::vector<std::pair<float, float>> result;
  for (std::size_t i = 0; i + 1 < flat.size(); i += 2) result.emplace_back(flat[i], flat[i + 1]);
  return result;
}

eval::YoloHead::Point point_of(layers::YoloPoint point) {
  switch (point) {
    case layers::YoloPoint::kCenter:
      return eval::YoloHead::Point::kCenter;
    case layers::YoloPoint::kLeftTop:
      return eval::YoloHead::Point::kLeftTop;
    case layers::YoloPoint::kRightBottom:
      return eval::YoloHead::Point::kRightBottom;
  }
  return eval::YoloHead::Point::kCenter;
}

}  // namespace

std::vector<NetworkHead> heads_of(const layers::Network& network) {
  std::vector<NetworkHead> heads;
  for (const layers::Layer& layer : network.layers) {
    eval::YoloHead head{.grid_w = static_cast<int>(layer.in.w),
                        .grid_h = static_cast<int>(layer.in.h)};
    if (const auto* yolo = std::get_if<layers::YoloSpec>(&layer.spec)) {
      head.kind = eval::YoloHead::Kind::kYolo;
      head.classes = yolo->classes;
      head.anchors = pairs(yolo->anchors);
      head.mask = yolo->mask;
      head.new_coords = yolo->new_coords != 0;
    } else if (const auto* gaussian = std::get_if<layers::GaussianYoloSpec>(&layer.spec)) {
      head.kind = eval::YoloHead::Kind::kGaussianYolo;
      head.classes = gaussian->classes;
      head.anchors = pairs(gaussian->anchors);
      head.mask = gaussian->mask;
      head.point = point_of(gaussian->yolo_point);
    } else if (const auto* region = std::get_if<layers::RegionSpec>(&layer.spec)) {
      head.kind = eval::YoloHead::Kind::kRegion;
      head.classes = region->classes;
      head.anchors = pairs(region->anchors);
    } else {
      continue;
    }
    heads.push_back({layer.index, std::move(head)});
  }
  return heads;
}

eval::DetectionList decode_heads(const layers::Network& network,
                                 const std::vector<NetworkHead>& heads,
                                 const std::vector<std::vector<float>>& outputs,
                                 const eval::DecodeOptions& options) {
  eval::DetectionList list(heads.empty() ? 0 : heads[0].head.classes);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    eval::DecodeOptions of_head = options;
    of_head.net_w = network.net.width;
    of_head.net_h = network.net.height;
    of_head.head = static_cast<int>(i);
    eval::decode(heads[i].head,
                 std::span(outputs[i]).first(static_cast<std::size_t>(heads[i].head.output_size())),
                 of_head, list);
  }
  return list;
}

}  // namespace lantern::test
