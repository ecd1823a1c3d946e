#pragma once

#include <optional>
#include <span>
#include <string>

#include "eval/average_precision.hpp"

namespace lantern::eval {

/// The text of `detector map` (standard output), every line ended. `coco_map`: mAP@.50:.95 when it
/// was asked for.
std::string map_report_text(const MapResult& result, std::span<const std::string> names,
                            std::optional<double> coco_map = std::nullopt);
/// {"schema":1,"map50"..., "classes":[...]}; with `curves` the precision-recall curve of every
/// class.
std::string map_report_json(const MapResult& result, std::span<const std::string> names,
                            std::optional<double> coco_map = std::nullopt, bool curves = false);

}  // namespace lantern::eval
