#include "eval/anchor_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <nlohmann/json.hpp>

namespace lantern::eval {

namespace {

std::string anchor_text(const BoxSize& anchor, int net_width) {
  return net_width > 32 ? fmt::format("{:3.0f},{:3.0f}", anchor.w, anchor.h)
                        : fmt::format("{:2.4f},{:2.4f}", anchor.w, anchor.h);
}

double percent(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

std::int64_t boxes_of_mask(const AnchorFit& fit, std::span<const int> mask) {
  std::int64_t boxes = 0;
  for (const int anchor : mask) boxes += fit.boxes[static_cast<std::size_t>(anchor)];
  return boxes;
}

std::string anchors_text(const AnchorReport& report) {
  std::vector<std::string> parts;
  for (const BoxSize& anchor : report.anchors) parts.push_back(anchor_text(anchor, report.width));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string counters_text(const AnchorReport& report) {
  return fmt::format("counters_per_class = {}", fmt::join(report.class_boxes, ", "));
}

std::string anchor_report_text(const AnchorReport& report) {
  std::string text = fmt::format("{}\n\n avg IoU = {:2.2f} % \n\n", counters_text(report),
                                 100 * report.fit.average_iou);
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "anchors = {}\n\n", anchors_text(report));
  if (static_cast<std::size_t>(report.wanted) > report.anchors.size()) {
    fmt::format_to(out, " the {} boxes have only {} distinct size{}: {} anchor{} instead of {}\n",
                   report.boxes, report.distinct, report.distinct == 1 ? "" : "s",
                   report.anchors.size(), report.anchors.size() == 1 ? "" : "s", report.wanted);
  }
  fmt::format_to(out, " best possible recall at IoU 0.50 = {:.2f} %\n", 100 * report.fit.recall);
  if (report.cfg_fit) {
    fmt::format_to(out,
                   " anchors of the cfg as it is: avg IoU = {:.2f} %, best possible recall = "
                   "{:.2f} %\n",
                   100 * report.cfg_fit->average_iou, 100 * report.cfg_fit->recall);
  }
  for (std::size_t i = 0; i < report.anchors.size(); ++i) {
    fmt::format_to(out, " anchor {}: {}  best for {:.2f} % of the boxes\n", i,
                   anchor_text(report.anchors[i], report.width),
                   percent(report.fit.boxes[i], report.boxes));
  }
  for (std::size_t h = 0; h < report.masks.size(); ++h) {
    const std::vector<int>& mask = report.masks[h];
    if (mask.empty()) {
      fmt::format_to(out, " head of stride {}: no anchor suits it\n", report.strides[h]);
      continue;
    }
    fmt::format_to(out,
                   " head of stride {}: mask = {}  ({:.2f} % of the boxes; filters = {} * (classes "
                   "+ 5))\n",
                   report.strides[h], fmt::join(mask, ","),
                   percent(boxes_of_mask(report.fit, mask), report.boxes), mask.size());
  }
  return text;
}

std::string anchor_report_json(const AnchorReport& report) {
  nlohmann::ordered_json json{{"schema", 1},
                              {"width", report.width},
                              {"height", report.height},
                              {"images", report.images},
                              {"boxes", report.boxes},
                              {"distinct_sizes", report.distinct},
                              {"average_iou", report.fit.average_iou},
                              {"recall50", report.fit.recall}};
  json["anchors"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < report.anchors.size(); ++i) {
    json["anchors"].push_back({{"width", report.anchors[i].w},
                               {"height", report.anchors[i].h},
                               {"boxes", report.fit.boxes[i]}});
  }
  json["masks"] = nlohmann::ordered_json::array();
  for (std::size_t h = 0; h < report.masks.size(); ++h) {
    json["masks"].push_back({{"stride", report.strides[h]},
                             {"mask", report.masks[h]},
                             {"boxes", boxes_of_mask(report.fit, report.masks[h])}});
  }
  if (report.cfg_fit) {
    json["cfg"] = {{"average_iou", report.cfg_fit->average_iou},
                   {"recall50", report.cfg_fit->recall}};
  }
  json["counters_per_class"] = report.class_boxes;
  return json.dump(2) + "\n";
}

}  // namespace lantern::eval
