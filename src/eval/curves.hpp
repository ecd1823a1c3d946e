#pragma once

#include <vector>

#include "eval/average_precision.hpp"

namespace lantern::eval {

/// Both 0 to 1.
struct CurveXy {
  double x = 0, y = 0;
  bool operator==(const CurveXy&) const = default;
};

/// Precision over recall, from recall 0; ends at 0 behind the largest recall that was reached.
std::vector<CurveXy> precision_recall_curve(const ClassResult& result);
/// Mean over the classes that have truths of the largest precision at that recall or a higher one,
/// at recalls 0, 0.01, .. 1.
std::vector<CurveXy> mean_precision_curve(const MapResult& result);
/// F1 over the confidence threshold: its value at the score of every true positive, x ascending.
std::vector<CurveXy> f1_curve(const ClassResult& result);

}  // namespace lantern::eval
