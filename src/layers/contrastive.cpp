#include "layers/head.hpp"

namespace lantern::layers {
namespace {

using S = ContrastiveSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "classes",
      .field = &S::classes,
      .otherwise = 1000,
      .min = 1,
      .max = kMaxClasses,
      .doc = "Number of classes, without yolo_layer."},
    K{.name = "yolo_layer",
      .field = &S::yolo_layer,
      .doc =
          "[yolo] layer that gives boxes and classes; negative: relative to this layer; 0: none."},
    K{.name = "temperature",
      .field = &S::temperature,
      .otherwise = 1,
      .doc = "Divides the similarities; not 0."},
    K{.name = "cls_normalizer",
      .field = &S::cls_normalizer,
      .otherwise = 1,
      .doc = "Weight of the loss."},
    K{.name = "max_delta",
      .field = &S::max_delta,
      .otherwise = kFltMax,
      .min = 0,
      .doc = "Clamp of the gradients."},
    K{.name = "contrastive_neg_max",
      .field = &S::contrastive_neg_max,
      .otherwise = 3,
      .min = 0,
      .doc = "Negatives used per positive pair."},
};

void finish(S& s, cfg::SectionReader& reader) {
  // Layer 0 cannot be a [yolo]; Darknet takes 0 as "none" and then crashes (layers.md L6).
  if (s.yolo_layer == 0) s.yolo_layer.reset();
  if (s.temperature == 0) {
    reader.diagnostics().error(reader.where("temperature"),
                               "[contrastive] temperature is 0, want another number");
  }
}

void references(const Spec& spec, std::vector<Reference>& out) {
  const auto& s = std::get<S>(spec);
  if (s.yolo_layer) out.push_back({"yolo_layer", *s.yolo_layer});
}

void shape(ShapeContext& context, Layer& layer) {
  layer.out = layer.in;
  if (layer.sources.empty()) return;
  const Layer& source = context.layer(layer.sources.front());
  const auto* yolo = std::get_if<YoloSpec>(&source.spec);
  if (yolo == nullptr) {
    context.error(layer, "yolo_layer",
                  "yolo_layer means layer {} ({}), which is a [{}]; want a [yolo]", source.index,
                  source.where, source.section);
    layer.out = {};
    return;
  }
  const auto anchors = static_cast<std::int64_t>(yolo->mask.size());
  if (layer.in.w != source.in.w || layer.in.h != source.in.h || layer.in.c % anchors != 0) {
    context.error(
        layer, "yolo_layer",
        "wants an embedding for each of {} anchors on the {}x{} cells of layer {} ({}), the "
        "input is {}",
        anchors, source.in.w, source.in.h, source.index, source.where, to_string(layer.in));
    layer.out = {};
  }
}

}  // namespace

extern const LayerDef kContrastive;
const LayerDef kContrastive{.name = "contrastive",
                            .aliases = {},
                            .doc = "Contrastive loss of embeddings.",
                            .keys = keys_of<S, kKeys>,
                            .read = read_as<S, kKeys, finish>,
                            .references = references,
                            .shape = shape,
                            .parameters = nullptr};

}  // namespace lantern::layers
