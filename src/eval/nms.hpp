#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "eval/detection.hpp"

namespace lantern::eval {

enum class NmsKind { kDefault, kGreedy, kDiou, kCorners };
/// cfg names (`nms_kind=`).
inline constexpr std::array<std::pair<std::string_view, NmsKind>, 4> kNmsKinds{
    {{"default", NmsKind::kDefault},
     {"greedynms", NmsKind::kGreedy},
     {"diounms", NmsKind::kDiou},
     {"cornersnms", NmsKind::kCorners}}};
std::optional<NmsKind> parse_nms_kind(std::string_view name);

struct NmsOptions {
  NmsKind kind = NmsKind::kDefault;
  float threshold = 0.45F;
  float beta = 0.6F;  ///< `beta_nms`, exponent of kDiou
};

/// Per class, probability descending (ties by head, anchor, cell): a later box that overlaps a kept
/// one by more than the threshold loses that class. Nothing is removed from the list; detections of
/// objectness 0 lose every class. The list is then sorted by best probability descending with the
/// same ties. O(n * kept) per class.
void suppress(DetectionList& detections, const NmsOptions& options);
/// Class-blind, objectness descending, plain IoU: a suppressed detection loses its objectness and
/// every class. The list is then sorted by objectness descending.
void suppress_by_objectness(DetectionList& detections, float threshold);

}  // namespace lantern::eval
