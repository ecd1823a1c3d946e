#include "eval/curves.hpp"

#include <algorithm>

namespace lantern::eval {

std::vector<CurveXy> precision_recall_curve(const ClassResult& result) {
  std::vector<CurveXy> points;
  for (const CurvePoint& point : result.curve) {
    if (points.empty()) points.push_back({0, point.precision});
    points.push_back({point.recall, point.precision});
  }
  if (!points.empty()) points.push_back({points.back().x, 0});
  return points;
}

std::vector<CurveXy> mean_precision_curve(const MapResult& result) {
  constexpr int kLast = 100;
  std::vector<CurveXy> points;
  for (int i = 0; i <= kLast; ++i) points.push_back({static_cast<double>(i) / kLast, 0});
  int classes = 0;
  for (const ClassResult& one : result.classes) {
    if (one.truths == 0) continue;
    ++classes;
    double best = 0;
    auto rest = one.curve.rbegin();
    for (auto point = points.rbegin(); point != points.rend(); ++point) {
      for (; rest != one.curve.rend() && rest->recall >= point->x; ++rest) {
        best = std::max(best, rest->precision);
      }
      point->y += best;
    }
  }
  for (CurveXy& point : points) point.y /= std::max(classes, 1);
  return points;
}

std::vector<CurveXy> f1_curve(const ClassResult& result) {
  std::vector<CurveXy> points;
  for (auto point = result.curve.rbegin(); point != result.curve.rend(); ++point) {
    const double f1 = 2 * point->precision * point->recall / (point->precision + point->recall);
    if (points.empty()) points.push_back({0, f1});
    points.push_back({static_cast<double>(point->score), f1});
  }
  if (!points.empty()) points.push_back({points.back().x, 0});
  return points;
}

}  // namespace lantern::eval
