#include "layers/head.hpp"

namespace lantern::layers {
namespace {

using S = YoloSpec;
using K = cfg::Key<S>;

constexpr std::array<cfg::Word, 3> kNmsWords{{{"default", 0}, {"greedynms", 1}, {"diounms", 2}}};

constexpr std::array kOwnKeys{
    K{.name = "focal_loss", .field = &S::focal_loss, .doc = "1: focal loss of classes."},
    K{.name = "new_coords",
      .field = &S::new_coords,
      .doc = "1: decoding of scaled YOLOv4; the convolution before must use activation=logistic."},
    K{.name = "show_details",
      .field = &S::show_details,
      .otherwise = 1,
      .doc = "0: shorter training lines."},
    K{.name = "embedding_layer",
      .field = &S::embedding_layer,
      .doc = "Layer with appearance embeddings; negative: relative to this layer."},
    K{.name = "track_history_size",
      .field = &S::track_history_size,
      .otherwise = 5,
      .min = 0,
      .max = 1 << 16,
      .doc = "Tracker: frames kept."},
    K{.name = "sim_thresh",
      .field = &S::sim_thresh,
      .otherwise = 0.8,
      .doc = "Tracker: least similarity."},
    K{.name = "dets_for_track",
      .field = &S::dets_for_track,
      .otherwise = 1,
      .doc = "Detections that start a track."},
    K{.name = "dets_for_show",
      .field = &S::dets_for_show,
      .otherwise = 1,
      .doc = "Detections that show a track."},
    K{.name = "track_ciou_norm",
      .field = &S::track_ciou_norm,
      .otherwise = 0.01,
      .doc = "Tracker: weight of CIoU in matching."},
};
constexpr auto kKeys = joined(head_keys<S>(kNmsWords), kOwnKeys);

void finish(S& s, cfg::SectionReader& reader) { finish_head(s, reader); }

void references(const Spec& spec, std::vector<Reference>& out) {
  const auto& s = std::get<S>(spec);
  if (s.embedding_layer) out.push_back({"embedding_layer", *s.embedding_layer});
}

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  shape_head(context, layer, s, 4);
  if (layer.out.w == 0) return;
  if (const Layer* conv = feeding_convolution(context, layer.index)) {
    const Activation activation = std::get<ConvolutionalSpec>(conv->spec).activation;
    const Activation wanted = s.new_coords != 0 ? Activation::kLogistic : Activation::kLinear;
    if (activation != wanted) {
      context.warning(layer, "new_coords",
                      "new_coords={} wants activation={} in the convolution before ({}), it is {}",
                      s.new_coords, ops::to_string(wanted), conv->where,
                      ops::to_string(activation));
    }
  }
  if (s.embedding_layer) {
    const Layer& source = context.layer(layer.sources.front());
    const auto anchors = static_cast<std::int64_t>(s.mask.size());
    if (source.out.c % anchors != 0) {
      context.error(layer, "embedding_layer",
                    "layer {} ({}) has {} channels, which {} anchors do not divide", source.index,
                    source.where, source.out.c, anchors);
      layer.out = {};
    }
  }
}

}  // namespace

extern const LayerDef kYolo;
const LayerDef kYolo{.name = "yolo",
                     .aliases = {},
                     .doc = "Detection output of YOLOv3, v4 and v7.",
                     .keys = keys_of<S, kKeys>,
                     .read = read_as<S, kKeys, finish>,
                     .references = references,
                     .shape = shape,
                     .parameters = nullptr};

}  // namespace lantern::layers
