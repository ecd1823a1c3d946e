#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/anchors.hpp"

namespace lantern::eval {

/// What `detector calc_anchors` tells.
struct AnchorReport {
  int width = 0, height = 0;  ///< of the network
  int wanted = 0;             ///< clusters asked for
  std::int64_t images = 0, boxes = 0, distinct = 0;
  std::vector<BoxSize> anchors{};  ///< rounded
  AnchorFit fit{};
  std::vector<int> strides{};               ///< of the heads, cfg order
  std::vector<std::vector<int>> masks{};    ///< parallel to `strides`
  std::optional<AnchorFit> cfg_fit{};       ///< of the anchors that the cfg has now
  std::vector<std::int64_t> class_boxes{};  ///< by class
};

/// Boxes whose best anchor is in the mask.
std::int64_t boxes_of_mask(const AnchorFit& fit, std::span<const int> mask);

/// "  8,  8,  32, 32" as Darknet writes it: the content of anchors.txt, without a line end.
std::string anchors_text(const AnchorReport& report);
/// "counters_per_class = 20, 0": the content of counters_per_class.txt, without a line end.
std::string counters_text(const AnchorReport& report);
/// For people; Darknet's lines first, every line ended.
std::string anchor_report_text(const AnchorReport& report);
std::string anchor_report_json(const AnchorReport& report);

}  // namespace lantern::eval
