#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "eval/detection.hpp"

namespace lantern::eval {

/// One detection head as the cfg describes it. `anchors` holds all pairs of the section, `mask`
/// those it owns (empty: all). Anchors of yolo and Gaussian_yolo are in network input pixels, of
/// region in cells.
struct YoloHead {
  enum class Kind { kYolo, kGaussianYolo, kRegion, kDetection };
  enum class Point { kCenter, kLeftTop, kRightBottom };

  Kind kind = Kind::kYolo;
  int classes = 0;
  int coords = 4;  ///< region: values of an anchor besides objectness and classes
  std::vector<std::pair<float, float>> anchors{};
  std::vector<int> mask{};
  int grid_w = 0, grid_h = 0;
  bool new_coords = false;       ///< yolo
  Point point = Point::kCenter;  ///< Gaussian_yolo
  int boxes_per_cell = 0;        ///< detection: `num`
  bool sqrt_size = false;        ///< detection: `sqrt`

  /// region with `tree=`: parent of every class, -1 for a root; a parent stands before its
  /// children.
  std::vector<int> tree_parents{};

  int boxes() const;
  /// Floats one image of this head's output must have.
  std::int64_t output_size() const;
};

struct DecodeOptions {
  int net_w = 0, net_h = 0;
  float threshold = 0.25F;  ///< strict: objectness > threshold, and objectness * class > threshold
  int head = 0;             ///< number written into Detection::head
  /// Image size in pixels when the image was letterboxed into the network input.
  std::optional<std::pair<int, int>> letterboxed_image{};
};

/// Appends the detections of one image. `output` is the head's activated output (x, y already
/// scaled by scale_x_y): yolo [anchor][x y w h obj classes..][row][column]; Gaussian with the
/// sigmas between; region [row][column][anchor][x y w h obj classes..] and then coords beyond 4;
/// detection [cells x classes][cells x boxes][cells x boxes x 4]. The order is cell by cell (row
/// major), anchor by anchor. Boxes are relative and not clipped; one whose numbers are not finite
/// is left out. Throws kInvalidConfig when sizes do not agree.
void decode(const YoloHead& head, std::span<const float> output, const DecodeOptions& options,
            DetectionList& detections);

}  // namespace lantern::eval
