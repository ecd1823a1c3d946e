#include "layers/head.hpp"

namespace lantern::layers {
namespace {

using S = DetectionSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "classes",
      .field = &S::classes,
      .otherwise = 1,
      .min = 1,
      .max = kMaxClasses,
      .doc = "Number of classes."},
    K{.name = "coords",
      .field = &S::coords,
      .otherwise = 1,
      .min = 1,
      .max = 1 << 10,
      .doc = "Coordinates per box."},
    K{.name = "num",
      .field = &S::num,
      .otherwise = 1,
      .min = 1,
      .max = 1 << 10,
      .doc = "Boxes per cell."},
    K{.name = "side",
      .field = &S::side,
      .otherwise = 7,
      .min = 1,
      .max = 1 << 10,
      .doc = "Side of the grid."},
    K{.name = "rescore", .field = &S::rescore, .doc = "1: the objectness target is the IoU."},
    K{.name = "softmax", .field = &S::softmax, .doc = "1: softmax over the classes of a cell."},
    K{.name = "sqrt",
      .field = &S::sqrt,
      .doc = "1: width and height are predicted as square roots."},
    K{.name = "max",
      .field = &S::max,
      .otherwise = 200,
      .min = 1,
      .max = 1 << 20,
      .doc = "True boxes kept per image."},
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
      .doc = "Not 0: the box of a cell is drawn during the first 64000 images of training."},
    K{.name = "forced",
      .field = &S::forced,
      .doc = "1: choose the box of a cell by size, in place of overlap."},
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
    K{.name = "reorg", .field = &S::reorg, .doc = "Accepted; has no effect."},
};

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  const std::int64_t cell = (1 + std::int64_t{s.coords}) * s.num + s.classes;
  const std::int64_t needed = std::int64_t{s.side} * s.side * cell;
  const std::int64_t inputs = layer.in.elements();
  if (inputs != needed) {
    context.error(
        layer, "",
        "side={} num={} coords={} classes={} need {}*{}*((1+{})*{}+{}) = {} inputs, the previous "
        "layer gives {}",
        s.side, s.num, s.coords, s.classes, s.side, s.side, s.coords, s.num, s.classes, needed,
        inputs);
    return;
  }
  layer.out = {1, 1, inputs};
}

}  // namespace

extern const LayerDef kDetection;
const LayerDef kDetection{.name = "detection",
                          .aliases = {},
                          .doc = "Detection output of YOLOv1.",
                          .keys = keys_of<S, kKeys>,
                          .read = read_as<S, kKeys>,
                          .references = nullptr,
                          .shape = shape,
                          .parameters = nullptr};

}  // namespace lantern::layers
