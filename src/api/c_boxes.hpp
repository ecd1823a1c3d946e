#pragma once

#include "eval/detection.hpp"
#include "lantern/lantern.h"

namespace lantern::api {

/// The C form of a list: boxes times (w, h). Freed by lantern_free_detections.
lantern_detection* c_detections(const eval::DetectionList& list, float w, float h);

}  // namespace lantern::api
