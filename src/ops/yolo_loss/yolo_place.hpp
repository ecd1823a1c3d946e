#pragma once

#include <cstdint>
#include <optional>

#include "ops/yolo_loss/yolo_params.hpp"

namespace lantern::ops {

/// Where step 2 of the [yolo] loss (reference/training.md 12.3) puts a truth.
struct YoloPlace {
  int anchor = 0;  ///< of the mask
  std::int64_t cell = 0;
  int class_id = 0;  ///< after the class map
};

/// The place of a truth row of six floats by its best anchor; nothing when the row is passed over
/// or the best anchor belongs to another head.
std::optional<YoloPlace> yolo_place(const YoloParams& params, const float* row);

}  // namespace lantern::ops
