#include "eval/map_report.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

namespace lantern::eval {
namespace {

std::string name_of(std::span<const std::string> names, std::size_t class_id) {
  return class_id < names.size() ? names[class_id] : std::to_string(class_id);
}

nlohmann::ordered_json or_null(std::optional<double> value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

// The lines of the published evaluation, which scripts read; -1 where nothing can be measured.
std::string coco_text(const CocoResult& result) {
  std::string text;
  for (std::size_t n = 0; n < kCocoNumbers.size(); ++n) {
    const CocoNumber& number = kCocoNumbers[n];
    fmt::format_to(std::back_inserter(text),
                   " {:<18} {} @[ IoU={:<9} | area={:>6} | maxDets={:>3} ] = {:.3f}\n",
                   number.is_recall ? "Average Recall" : "Average Precision",
                   number.is_recall ? "(AR)" : "(AP)", number.iou, number.area,
                   number.most_detections, result.numbers[n].value_or(-1));
  }
  return text;
}

}  // namespace

std::string map_report_text(const MapResult& result, std::span<const std::string> names,
                            const MapExtras& extras) {
  std::string text = fmt::format(" detections_count = {}, unique_truth_count = {}\n",
                                 result.detections_count, result.truths);
  const auto out = std::back_inserter(text);
  for (std::size_t c = 0; c < result.classes.size(); ++c) {
    const ClassResult& one = result.classes[c];
    const std::string ap = one.truths == 0 ? "-" : fmt::format("{:.2f}%", 100 * one.ap);
    fmt::format_to(out, "class_id = {}, name = {}, ap = {}   \t (TP = {}, FP = {})\n", c,
                   name_of(names, c), ap, one.tp, one.fp);
  }
  const MapOptions& options = result.options;
  fmt::format_to(out,
                 " for conf_thresh = {0:.2f}, precision = {1:.2f}, recall = {2:.2f}, F1-score = "
                 "{3:.2f}\n for conf_thresh = {0:.2f}, TP = {4}, FP = {5}, FN = {6}, average IoU = "
                 "{7:.2f} %\n",
                 options.confidence_threshold, result.precision, result.recall, result.f1,
                 result.tp, result.fp, result.fn, 100 * result.average_iou);
  fmt::format_to(out, "\n IoU threshold = {:.0f} %, used ", 100 * options.iou_threshold);
  if (options.points == 0) {
    text += "Area-Under-Curve for each unique Recall\n";
  } else {
    fmt::format_to(out, "{} Recall-points\n", options.points);
  }
  fmt::format_to(out, " mean average precision (mAP@{:.2f}) = {:f}, or {:.2f} %\n",
                 options.iou_threshold, result.map, 100 * result.map);
  if (extras.coco != nullptr) {
    fmt::format_to(out, " mean average precision (mAP@0.50:0.95) = {:f}, or {:.2f} %\n",
                   extras.coco->ap(), 100 * extras.coco->ap());
  }
  if (result.truths == 0) {
    text += " there are 0 truth boxes in the validation set: these figures say nothing\n";
  } else if (result.classes_without_truth > 0) {
    fmt::format_to(out,
                   " without the {} of {} classes that have no truth boxes (counted as 0 above): "
                   "{:f}, or {:.2f} %\n",
                   result.classes_without_truth, result.classes.size(), result.map_with_truths,
                   100 * result.map_with_truths);
  }
  if (result.ignored_truths > 0) {
    fmt::format_to(out, " {} truth boxes left out: class number out of range\n",
                   result.ignored_truths);
  }
  if (extras.coco != nullptr) text += "\n" + coco_text(*extras.coco);
  if (extras.confusion != nullptr) text += confusion_text(*extras.confusion, names);
  return text;
}

std::string map_report_json(const MapResult& result, std::span<const std::string> names,
                            const MapExtras& extras) {
  nlohmann::ordered_json json;
  json["schema"] = 1;
  // The key names the IoU threshold: map50, map75.
  json[fmt::format("map{:.0f}", 100 * result.options.iou_threshold)] = result.map;
  json["map_with_truths"] = result.map_with_truths;
  if (extras.coco != nullptr) {
    json["map50_95"] = extras.coco->ap();
    for (std::size_t n = 0; n < kCocoNumbers.size(); ++n) {
      json["coco"][std::string(kCocoNumbers[n].key)] = or_null(extras.coco->numbers[n]);
    }
  }
  json["iou_thresh"] = result.options.iou_threshold;
  json["conf_thresh"] = result.options.confidence_threshold;
  json["points"] = result.options.points;
  json["classes"] = nlohmann::ordered_json::array();
  for (std::size_t c = 0; c < result.classes.size(); ++c) {
    const ClassResult& one = result.classes[c];
    nlohmann::ordered_json entry{{"class_id", c}, {"name", name_of(names, c)},
                                 {"ap", one.ap},  {"tp", one.tp},
                                 {"fp", one.fp},  {"truths", one.truths}};
    if (extras.coco != nullptr) entry["ap50_95"] = or_null(extras.coco->class_ap[c]);
    if (extras.curves) {
      entry["curve"] = nlohmann::ordered_json::array();
      for (const CurvePoint& point : one.curve) {
        entry["curve"].push_back({point.score, point.precision, point.recall});
      }
    }
    json["classes"].push_back(std::move(entry));
  }
  json["precision"] = result.precision;
  json["recall"] = result.recall;
  json["f1"] = result.f1;
  json["average_iou"] = result.average_iou;
  json["tp"] = result.tp;
  json["fp"] = result.fp;
  json["fn"] = result.fn;
  json["detections_count"] = result.detections_count;
  json["truth_count"] = result.truths;
  if (const ConfusionMatrix* matrix = extras.confusion) {
    json["confusion"] = nlohmann::ordered_json::array();
    for (int truth = 0; truth <= matrix->classes(); ++truth) {
      nlohmann::ordered_json row = nlohmann::ordered_json::array();
      for (int detected = 0; detected <= matrix->classes(); ++detected) {
        row.push_back(matrix->at(truth, detected));
      }
      json["confusion"].push_back(std::move(row));
    }
  }
  // Names come from files in any encoding; what is not UTF-8 is replaced, the document stays valid.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lantern::eval
