#pragma once

#include <span>
#include <string>

#include "eval/average_precision.hpp"
#include "eval/coco.hpp"
#include "eval/confusion.hpp"

namespace lantern::eval {

/// What was measured beside the mean average precision; null: not asked for.
struct MapExtras {
  const CocoResult* coco = nullptr;
  const ConfusionMatrix* confusion = nullptr;
  bool curves = false;  ///< JSON: the precision-recall curve of every class
};

/// The text of `detector map` (standard output), every line ended.
std::string map_report_text(const MapResult& result, std::span<const std::string> names,
                            const MapExtras& extras = {});
/// {"schema":1,"map50"..., "classes":[...]} (docs/cli.md).
std::string map_report_json(const MapResult& result, std::span<const std::string> names,
                            const MapExtras& extras = {});

}  // namespace lantern::eval
