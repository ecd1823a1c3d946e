#include "layers/head.hpp"

namespace lantern::layers {
namespace {

using S = RegionSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "classes",
      .field = &S::classes,
      .otherwise = 20,
      .min = 1,
      .max = kMaxClasses,
      .doc = "Number of classes."},
    K{.name = "num",
      .field = &S::num,
      .otherwise = 1,
      .min = 1,
      .max = 1 << 12,
      .doc = "Anchors per cell."},
    K{.name = "coords",
      .field = &S::coords,
      .otherwise = 4,
      .min = 4,
      .max = 1 << 12,
      .doc = "Coordinates per anchor; those beyond the 4 of the box have no loss."},
    K{.name = "anchors",
      .field = &S::anchors,
      .unit = "cells",
      .doc = "Width, height pairs; missing values are 0.5."},
    K{.name = "max",
      .field = &S::max,
      .otherwise = 200,
      .min = 1,
      .max = 1 << 20,
      .doc = "True boxes kept per image."},
    K{.name = "softmax", .field = &S::softmax, .doc = "1: softmax over the classes."},
    K{.name = "tree",
      .field = &S::tree,
      .otherwise = "",
      .doc = "Hierarchy file of the classes.",
      .is_path = true},
    K{.name = "map",
      .field = &S::map,
      .otherwise = "",
      .doc = "File with one class number per line.",
      .is_path = true},
    K{.name = "jitter",
      .field = &S::jitter,
      .otherwise = 0.2,
      .min = 0,
      .doc = "Random crop of the image, as a share of its sides."},
    K{.name = "resize",
      .field = &S::resize,
      .otherwise = 1,
      .doc = "Random scale: 1.5 means 1/1.5 to 1.5."},
    K{.name = "random",
      .field = &S::random,
      .min = 0,
      .doc = "Random network sizes in training; 1 means range 1.4."},
    K{.name = "thresh",
      .field = &S::thresh,
      .otherwise = 0.5,
      .doc = "No objectness loss above this overlap."},
    K{.name = "rescore", .field = &S::rescore, .doc = "1: the objectness target is the IoU."},
    K{.name = "bias_match", .field = &S::bias_match, .doc = "1: match anchors by shape."},
    K{.name = "classfix", .field = &S::classfix, .doc = "Darknet's class correction."},
    K{.name = "focal_loss", .field = &S::focal_loss, .doc = "1: focal loss of classes."},
    K{.name = "coord_scale",
      .field = &S::coord_scale,
      .otherwise = 1,
      .doc = "Weight of the box loss."},
    K{.name = "object_scale",
      .field = &S::object_scale,
      .otherwise = 1,
      .doc = "Weight of objectness where a box is."},
    K{.name = "noobject_scale",
      .field = &S::noobject_scale,
      .otherwise = 1,
      .doc = "Weight of objectness elsewhere."},
    K{.name = "class_scale",
      .field = &S::class_scale,
      .otherwise = 1,
      .doc = "Weight of the class loss."},
    K{.name = "mask_scale",
      .field = &S::mask_scale,
      .otherwise = 1,
      .doc = "Accepted; has no effect."},
    K{.name = "absolute", .field = &S::absolute, .doc = "Accepted; has no effect."},
    K{.name = "log", .field = &S::log, .doc = "Accepted; has no effect."},
    K{.name = "sqrt", .field = &S::sqrt, .doc = "Accepted; has no effect."},
};

void finish(S& s, cfg::SectionReader& reader) { finish_anchors(s.anchors, s.num, reader); }

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  const std::int64_t needed = (std::int64_t{s.coords} + 1 + s.classes) * s.num;
  const std::string formula = fmt::format("({}+{}+1)*{}", s.classes, s.coords, s.num);
  if (check_head_channels(context, layer, needed, formula)) layer.out = layer.in;
}

}  // namespace

extern const LayerDef kRegion;
const LayerDef kRegion{.name = "region",
                       .aliases = {},
                       .doc = "Detection output of YOLOv2.",
                       .keys = keys_of<S, kKeys>,
                       .read = read_as<S, kKeys, finish>,
                       .references = nullptr,
                       .shape = shape,
                       .parameters = nullptr};

}  // namespace lantern::layers
