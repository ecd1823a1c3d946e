#include "layers/head.hpp"

namespace lantern::layers {

void finish_anchors(std::vector<float>& anchors, int num, cfg::SectionReader& reader) {
  const auto needed = 2 * static_cast<std::size_t>(num);
  if (anchors.size() != needed) {
    const char* fate = anchors.size() > needed ? "the rest is ignored" : "missing ones are 0.5";
    reader.diagnostics().warning(reader.where("anchors"),
                                 "[{}] anchors has {} values, num={} makes {}; {}",
                                 reader.section().name, anchors.size(), num, needed, fate);
  }
  anchors.resize(needed, 0.5F);
  // A box is an anchor times e^x: without a size there is none, and the loss divides by it.
  if (const auto bad = std::ranges::find_if(anchors, [](float size) { return !(size > 0); });
      bad != anchors.end()) {
    reader.diagnostics().error(reader.where("anchors"),
                               "[{}] anchors: item {} is {}, want sizes > 0", reader.section().name,
                               bad - anchors.begin() + 1, *bad);
  }
}

void finish_head(HeadSpec& spec, cfg::SectionReader& reader) {
  Diagnostics& diagnostics = reader.diagnostics();
  const std::string& section = reader.section().name;
  // Some published files (cspx-p7-mish) have more anchors than num says and use them in mask.
  const int largest = spec.mask.empty() ? 0 : *std::ranges::max_element(spec.mask);
  if (largest >= spec.num && static_cast<std::size_t>(largest) < spec.anchors.size() / 2) {
    diagnostics.warning(reader.where("num"),
                        "[{}] num={}, but mask uses anchor {}, which anchors has; num={} is used",
                        section, spec.num, largest, largest + 1);
    spec.num = largest + 1;
  }
  finish_anchors(spec.anchors, spec.num, reader);
  for (const int index : spec.mask) {
    if (index >= 0 && index < spec.num) continue;
    diagnostics.error(reader.where("mask"), "[{}] mask has {}, want 0..{} with num={}", section,
                      index, spec.num - 1, spec.num);
    break;
  }
  if (spec.mask.empty()) {
    spec.mask.resize(static_cast<std::size_t>(spec.num));
    std::iota(spec.mask.begin(), spec.mask.end(), 0);
  }
  const auto counters = spec.counters_per_class.size();
  if (counters != 0 && counters != static_cast<std::size_t>(spec.classes)) {
    diagnostics.error(reader.where("counters_per_class"),
                      "[{}] counters_per_class has {} values, classes is {}; they "
                      "must be equal",
                      section, counters, spec.classes);
  }
}

std::optional<DetectionKeys> detection_keys(const Layer& layer) {
  return std::visit(
      [&](const auto& spec) -> std::optional<DetectionKeys> {
        using S = std::decay_t<decltype(spec)>;
        if constexpr (std::is_base_of_v<HeadSpec, S> || std::is_same_v<S, RegionSpec>) {
          return DetectionKeys{spec.classes, spec.max,    spec.jitter,
                               spec.resize,  spec.random, layer.where};
        } else if constexpr (std::is_same_v<S, DetectionSpec>) {
          return DetectionKeys{spec.classes, spec.max, spec.jitter, spec.resize, 0, layer.where};
        } else {
          return std::nullopt;
        }
      },
      layer.spec);
}

void shape_head(ShapeContext& context, Layer& layer, const HeadSpec& spec, int box_entries) {
  const auto anchors = static_cast<std::int64_t>(spec.mask.size());
  const std::string formula = fmt::format("({}+{}+1)*{}", spec.classes, box_entries, anchors);
  if (check_head_channels(context, layer, (spec.classes + box_entries + 1) * anchors, formula))
    layer.out = layer.in;
}

}  // namespace lantern::layers
