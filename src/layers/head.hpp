#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "layers/layer_def.hpp"

// Keys and checks that [yolo] and [Gaussian_yolo] share; used inside layers/ only.
namespace lantern::layers {

inline constexpr std::array<cfg::Word, 5> kIouWords{
    {{"iou", 0}, {"giou", 1}, {"mse", 2}, {"diou", 3}, {"ciou", 4}}};
inline constexpr std::array<cfg::Word, 4> kIouKindWords{
    {{"iou", 0}, {"giou", 1}, {"diou", 3}, {"ciou", 4}}};
inline constexpr std::array<cfg::Word, 2> kIouGradWords{{{"darknet", 0}, {"exact", 1}}};
inline constexpr double kFltMax = static_cast<double>(std::numeric_limits<float>::max());

template <typename S>
constexpr auto head_keys(std::span<const cfg::Word> nms_words) {
  using K = cfg::Key<S>;
  return std::array{
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
        .doc = "Anchors in the list."},
      K{.name = "mask",
        .field = &S::mask,
        .doc = "Anchors of this output by number; not given: all."},
      K{.name = "anchors",
        .field = &S::anchors,
        .unit = "px",
        .doc = "Width, height pairs; missing values are 0.5."},
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
        .doc = "Random network sizes in training; 1 means range 1.4, other values are the range."},
      K{.name = "ignore_thresh",
        .field = &S::ignore_thresh,
        .otherwise = 0.5,
        .doc = "No objectness loss for a prediction that overlaps more."},
      K{.name = "truth_thresh",
        .field = &S::truth_thresh,
        .otherwise = 1,
        .doc = "A prediction that overlaps more counts as positive."},
      K{.name = "iou_thresh",
        .field = &S::iou_thresh,
        .otherwise = 1,
        .doc = "Further anchors that overlap more become positive; 1: off."},
      K{.name = "iou_loss",
        .field = cfg::word_field<S, &S::iou_loss>(),
        .otherwise = "mse",
        .doc = "Loss of the box.",
        .words = kIouWords},
      K{.name = "iou_thresh_kind",
        .field = cfg::word_field<S, &S::iou_thresh_kind>(),
        .otherwise = "iou",
        .doc = "Overlap that iou_thresh is compared with.",
        .words = kIouKindWords},
      K{.name = "iou_normalizer",
        .field = &S::iou_normalizer,
        .otherwise = 0.75,
        .doc = "Weight of the box loss."},
      K{.name = "obj_normalizer",
        .field = &S::obj_normalizer,
        .otherwise = 1,
        .doc = "Weight of the objectness loss."},
      K{.name = "cls_normalizer",
        .field = &S::cls_normalizer,
        .otherwise = 1,
        .doc = "Weight of the class loss."},
      K{.name = "delta_normalizer",
        .field = &S::delta_normalizer,
        .otherwise = 1,
        .doc = "Factor of all gradients."},
      K{.name = "max_delta",
        .field = &S::max_delta,
        .otherwise = kFltMax,
        .min = 0,
        .doc = "Clamp of box gradients; also caps class multipliers."},
      K{.name = "counters_per_class",
        .field = &S::counters_per_class,
        .min = 0,
        .doc = "Boxes per class; rare classes get larger gradients."},
      K{.name = "label_smooth_eps",
        .field = &S::label_smooth_eps,
        .min = 0,
        .max = 1,
        .doc = "Label smoothing."},
      K{.name = "objectness_smooth",
        .field = &S::objectness_smooth,
        .doc = "1: the objectness target is the IoU."},
      K{.name = "scale_x_y",
        .field = &S::scale_x_y,
        .otherwise = 1,
        .doc = "Grid sensitivity: xy = s*xy - (s-1)/2."},
      K{.name = "nms_kind",
        .field = cfg::word_field<S, &S::nms_kind>(),
        .otherwise = "default",
        .doc = "Suppression of overlapping boxes.",
        .words = nms_words},
      K{.name = "beta_nms", .field = &S::beta_nms, .otherwise = 0.6, .doc = "Exponent of diounms."},
      K{.name = "map",
        .field = &S::map,
        .otherwise = "",
        .doc = "File with one class number per line.",
        .is_path = true},
      K{.name = "iou_grad",
        .field = cfg::word_field<S, &S::iou_grad>(),
        .otherwise = "darknet",
        .doc = "Gradient of the IoU losses: as published weights were trained, or exact.",
        .words = kIouGradWords},
      K{.name = "cls_normalizer_all",
        .field = &S::cls_normalizer_all,
        .min = 0,
        .max = 1,
        .doc = "1: cls_normalizer scales every class gradient."},
  };
}

template <typename T, std::size_t A, std::size_t B>
constexpr std::array<T, A + B> joined(const std::array<T, A>& a, const std::array<T, B>& b) {
  return [&]<std::size_t... I, std::size_t... J>(std::index_sequence<I...>,
                                                 std::index_sequence<J...>) {
    return std::array<T, A + B>{a[I]..., b[J]...};
  }
  (std::make_index_sequence<A>{}, std::make_index_sequence<B>{});
}

/// Fills mask and anchors up and checks their numbers and lengths.
void finish_head(HeadSpec& spec, cfg::SectionReader& reader);
/// Pads or cuts anchors to 2 * num values, with a warning.
void finish_anchors(std::vector<float>& anchors, int num, cfg::SectionReader& reader);
/// n * (entries + classes) channels; the output has the shape of the input.
void shape_head(ShapeContext& context, Layer& layer, const HeadSpec& spec, int box_entries);

}  // namespace lantern::layers
