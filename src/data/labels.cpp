#include "data/labels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <system_error>
#include <utility>

#include "core/text.hpp"

namespace lantern::data {

namespace {

struct Replacement {
  std::string_view find, put;
};

// Darknet's table, in its order.
constexpr Replacement kReplacements[] = {
    {"/images/train2017/", "/labels/train2017/"},
    {"/images/val2017/", "/labels/val2017/"},
    {"/JPEGImages/", "/labels/"},
    {"\\images\\train2017\\", "\\labels\\train2017\\"},
    {"\\images\\val2017\\", "\\labels\\val2017\\"},
    {"\\images\\train2014\\", "\\labels\\train2014\\"},
    {"\\images\\val2014\\", "\\labels\\val2014\\"},
    {"/images/train2014/", "/labels/train2014/"},
    {"/images/val2014/", "/labels/val2014/"},
    {"\\JPEGImages\\", "\\labels\\"},
};

bool file_exists(const std::string& path) {
  std::error_code code;
  return std::filesystem::exists(path, code);
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t at = 0; at < line.size();) {
    at = line.find_first_not_of(" \t", at);
    if (at == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = end;
  }
  return fields;
}

constexpr double kRounding = 1e-3;  ///< other tools round to three digits

}  // namespace

std::string darknet_label_path(std::string_view image_path) {
  std::string path(image_path);
  for (const auto& [find, put] : kReplacements) {
    if (const std::size_t at = path.find(find); at != std::string::npos)
      path.replace(at, find.size(), put);
  }
  path = trim(path);
  const std::size_t dot = path.rfind('.');
  const std::size_t slash = path.find_last_of("/\\");
  const bool has_ending =
      dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  if (has_ending) path.resize(dot);
  return path + ".txt";
}

std::string label_path(std::string_view image_path, bool* used_images_rule) {
  if (used_images_rule != nullptr) *used_images_rule = false;
  std::string path = darknet_label_path(image_path);
  if (file_exists(path)) return path;
  const auto is_separator = [](char c) { return c == '/' || c == '\\'; };
  constexpr std::string_view kImages = "images";
  for (std::size_t at = path.rfind(kImages); at != std::string::npos && !path.empty();
       at = at == 0 ? std::string::npos : path.rfind(kImages, at - 1)) {
    const std::size_t end = at + kImages.size();
    const bool is_component =
        (at == 0 || is_separator(path[at - 1])) && end < path.size() && is_separator(path[end]);
    if (!is_component) continue;
    std::string other = path;
    other.replace(at, kImages.size(), "labels");
    if (!file_exists(other)) continue;
    if (used_images_rule != nullptr) *used_images_rule = true;
    return other;
  }
  return path;
}

std::string_view to_string(LabelIssueKind kind) {
  switch (kind) {
    case LabelIssueKind::kMissingFile:
      return "label file missing (the image counts as background)";
    case LabelIssueKind::kMalformed:
      return "line that cannot be read (dropped)";
    case LabelIssueKind::kExtraColumns:
      return "line with too many columns (dropped)";
    case LabelIssueKind::kClassRange:
      return "class out of range (dropped)";
    case LabelIssueKind::kPixels:
      return "looks like pixels (dropped)";
    case LabelIssueKind::kCentreOutside:
      return "centre outside of the picture (dropped)";
    case LabelIssueKind::kNoArea:
      return "width or height not above 0 (dropped)";
    case LabelIssueKind::kNotFinite:
      return "number not finite (dropped)";
    case LabelIssueKind::kClipped:
      return "box sticks out of the picture (clipped, used)";
    case LabelIssueKind::kTooLarge:
      return "box larger than the picture (clipped, used)";
    case LabelIssueKind::kDuplicate:
      return "exact duplicate of a box (kept)";
    case LabelIssueKind::kTwoClasses:
      return "same box with another class (kept)";
  }
  return "";
}

bool is_bad(LabelIssueKind kind) {
  switch (kind) {
    case LabelIssueKind::kMissingFile:
    case LabelIssueKind::kClipped:
    case LabelIssueKind::kTooLarge:
    case LabelIssueKind::kDuplicate:
    case LabelIssueKind::kTwoClasses:
      return false;
    default:
      return true;
  }
}

std::string LabelIssue::to_string() const {
  return line > 0 ? fmt::format("{}:{}: {}", file, line, what) : fmt::format("{}: {}", file, what);
}

namespace {

/// One line: a box, or the reason why not. `issue` may also accompany a box.
class LineParser {
 public:
  LineParser(const std::string& file, int classes, LabelFile& out)
      : file_(file), classes_(classes), out_(out) {}

  void parse(int line, const std::vector<std::string_view>& fields) {
    if (fields.size() < 5) {
      return report(LabelIssueKind::kMalformed, line,
                    fmt::format("{} fields, want class cx cy w h", fields.size()));
    }
    if (fields.size() > 5 && !out_.sixth_ignored) {
      return report(LabelIssueKind::kExtraColumns, line,
                    fmt::format("{} columns, want class cx cy w h", fields.size()));
    }
    const std::optional<std::int64_t> class_id = parse_int(fields[0]);
    if (!class_id) {
      return report(LabelIssueKind::kMalformed, line,
                    fmt::format("class '{}' is no integer", fields[0]));
    }
    double v[4] = {};
    for (std::size_t i = 0; i < 4; ++i) {
      const std::optional<double> number = parse_float(fields[i + 1]);
      if (!number) {
        return report(LabelIssueKind::kMalformed, line,
                      fmt::format("'{}' is no number", fields[i + 1]));
      }
      v[i] = *number;
    }
    check(line, *class_id, v);
  }

 private:
  void report(LabelIssueKind kind, int line, std::string what) {
    what += is_bad(kind) ? ": dropped" : "";
    out_.issues.push_back({kind, file_, line, std::move(what)});
  }

  void check(int line, std::int64_t class_id, const double (&v)[4]) {
    const auto box = [&v](std::string_view what, std::string_view then = {}) {
      return fmt::format("{}: box {:g} {:g} {:g} {:g}{}", what, v[0], v[1], v[2], v[3], then);
    };
    for (const double value : v) {
      if (!std::isfinite(value)) return report(LabelIssueKind::kNotFinite, line, box("not finite"));
    }
    if (class_id < 0 || class_id > 0x7fffffff || (classes_ > 0 && class_id >= classes_)) {
      const std::string want =
          classes_ > 0 ? fmt::format("valid ids are 0 to {}", classes_ - 1) : "want >= 0";
      return report(LabelIssueKind::kClassRange, line, fmt::format("class {}, {}", class_id, want));
    }
    if (v[0] > 1 && v[1] > 1 && v[2] > 1 && v[3] > 1) {
      return report(LabelIssueKind::kPixels, line,
                    box("looks like pixels", ", want fractions of the picture"));
    }
    if (v[2] <= 0 || v[3] <= 0) return report(LabelIssueKind::kNoArea, line, box("no area"));
    if (v[0] < 0 || v[0] > 1 || v[1] < 0 || v[1] > 1) {
      return report(LabelIssueKind::kCentreOutside, line, box("centre outside of the picture"));
    }
    Label label{static_cast<int>(class_id), static_cast<float>(v[0]),
                static_cast<float>(v[1]),   static_cast<float>(v[2]),
                static_cast<float>(v[3]),   static_cast<int>(out_.boxes.size())};
    if (v[2] > 1 + kRounding || v[3] > 1 + kRounding) {
      report(LabelIssueKind::kTooLarge, line, box("larger than the picture", ": clipped, used"));
    } else if (v[0] - v[2] / 2 < -kRounding || v[0] + v[2] / 2 > 1 + kRounding ||
               v[1] - v[3] / 2 < -kRounding || v[1] + v[3] / 2 > 1 + kRounding) {
      report(LabelIssueKind::kClipped, line, box("sticks out of the picture", ": clipped, used"));
    }
    if (v[2] <= 1 + kRounding) label.w = std::min(label.w, 1.0F);
    if (v[3] <= 1 + kRounding) label.h = std::min(label.h, 1.0F);
    find_twins(line, label);
    out_.boxes.push_back(label);
  }

  void find_twins(int line, const Label& label) {
    const Corners corners{label.x, label.y, label.w, label.h};
    const auto [same, is_new] = exact_.emplace(std::pair(corners, label.class_id), line);
    const auto [place, is_new_place] = places_.emplace(corners, std::pair(line, label.class_id));
    if (!is_new) {
      report(LabelIssueKind::kDuplicate, line,
             fmt::format("exact duplicate of line {}: kept", same->second));
    } else if (!is_new_place) {
      report(LabelIssueKind::kTwoClasses, line,
             fmt::format("same box as line {} with class {} instead of {}: kept (multi-label)",
                         place->second.first, label.class_id, place->second.second));
    }
  }

  using Corners = std::array<float, 4>;
  const std::string& file_;
  int classes_;
  LabelFile& out_;
  std::map<std::pair<Corners, int>, int> exact_;   ///< box and class: line
  std::map<Corners, std::pair<int, int>> places_;  ///< box: line and class
};

}  // namespace

LabelFile parse_labels(std::string_view text, const std::string& file, int classes) {
  LabelFile result;
  std::vector<std::pair<int, std::vector<std::string_view>>> lines;
  bool all_six = true;
  int number = 0;
  for (const std::string_view raw : split_lines(text)) {
    ++number;
    std::vector<std::string_view> fields = fields_of(trim(raw));
    if (fields.empty()) continue;
    all_six = all_six && fields.size() == 6;
    lines.emplace_back(number, std::move(fields));
  }
  result.lines = static_cast<int>(lines.size());
  result.sixth_ignored = all_six && !lines.empty();
  LineParser parser(file, classes, result);
  for (const auto& [line, fields] : lines) parser.parse(line, fields);
  return result;
}

Label clip_to_image(Label label) {
  const auto clip = [](float& centre, float& size) {
    const float low = centre - size / 2;
    const float high = centre + size / 2;
    if (low >= 0 && high <= 1) return;
    const float clipped_low = std::max(low, 0.0F);
    const float clipped_high = std::min(high, 1.0F);
    centre = (clipped_low + clipped_high) / 2;
    size = clipped_high - clipped_low;
  };
  clip(label.x, label.w);
  clip(label.y, label.h);
  return label;
}

float track_id(std::string_view label_file, int line_index) {
  std::uint64_t hash = 5381;  // djb2
  for (const char c : label_file) hash = hash * 33 + static_cast<unsigned char>(c);
  return static_cast<float>(line_index + static_cast<std::int64_t>(hash % 4000) * 4000);
}

}  // namespace lantern::data
