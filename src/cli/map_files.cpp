#include "cli/map_files.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "draw/curve_chart.hpp"
#include "draw/matrix_chart.hpp"
#include "eval/curves.hpp"
#include "eval/map_report.hpp"

namespace lantern::cli {

namespace {

std::vector<draw::CurveChart::Point> drawn(const std::vector<eval::CurveXy>& points) {
  std::vector<draw::CurveChart::Point> result;
  result.reserve(points.size());
  for (const eval::CurveXy& point : points) result.push_back({point.x, point.y});
  return result;
}

void write_chart(const std::filesystem::path& folder, const std::string& name, const auto& chart) {
  const auto write = [&](const char* ending, draw::ChartFormat format) {
    write_file_atomically(folder / (name + ending), render(chart, format));
  };
  write(".svg", draw::ChartFormat::kSvg);
  write(".png", draw::ChartFormat::kPng);
}

}  // namespace

void prepare_map_files(const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    throw Error(ErrorCode::kResource, folder.string(), "this folder cannot be made: {}",
                failure.message());
  }
  check_writable(folder / "map.txt");
}

void write_map_files(const std::filesystem::path& folder, const train::EvaluateResult& result,
                     std::span<const std::string> names) {
  const double iou = 100 * result.map.options.iou_threshold;
  draw::CurveChart precision{.title = fmt::format("Precision and recall at IoU {:.0f} %", iou),
                             .x_name = "recall",
                             .y_name = "precision"};
  draw::CurveChart f1{.title = fmt::format("F1 at IoU {:.0f} %", iou),
                      .x_name = "confidence threshold",
                      .y_name = "F1"};
  precision.curves.push_back(
      {.name = fmt::format("mean  {:.1f} %", 100 * result.map.map_with_truths),
       .points = drawn(eval::mean_precision_curve(result.map)),
       .is_main = true});
  for (std::size_t c = 0; c < result.map.classes.size(); ++c) {
    const eval::ClassResult& one = result.map.classes[c];
    if (one.truths == 0) continue;
    const std::string name = c < names.size() ? names[c] : std::to_string(c);
    precision.curves.push_back({.name = fmt::format("{}  {:.1f} %", name, 100 * one.ap),
                                .points = drawn(eval::precision_recall_curve(one))});
    f1.curves.push_back({.name = name, .points = drawn(eval::f1_curve(one))});
  }
  write_chart(folder, "pr_curves", precision);
  write_chart(folder, "f1_curves", f1);
  if (result.confusion) {
    draw::MatrixChart matrix{.title = fmt::format("Confusion matrix at IoU {:.0f} %", iou),
                             .row_name = "truth",
                             .column_name = "detected"};
    for (int truth = 0; truth <= result.confusion->classes(); ++truth) {
      const auto c = static_cast<std::size_t>(truth);
      matrix.labels.push_back(truth == result.confusion->classes() ? "(background)"
                              : c < names.size()                   ? names[c]
                                                                   : std::to_string(truth));
      for (int detected = 0; detected <= result.confusion->classes(); ++detected) {
        matrix.counts.push_back(result.confusion->at(truth, detected));
      }
    }
    write_chart(folder, "confusion", matrix);
    write_file_atomically(folder / "confusion.csv", confusion_csv(*result.confusion, names));
  }
  write_file_atomically(folder / "map.json",
                        eval::map_report_json(result.map, names, result.extras(true)));
  write_file_atomically(folder / "map.txt", result.report);
}

}  // namespace lantern::cli
