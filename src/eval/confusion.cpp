#include "eval/confusion.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace lantern::eval {

namespace {

constexpr const char* kBackground = "(background)";

std::vector<std::string> labels_of(const ConfusionMatrix& matrix,
                                   std::span<const std::string> names) {
  std::vector<std::string> labels;
  for (int c = 0; c < matrix.classes(); ++c) {
    const auto i = static_cast<std::size_t>(c);
    labels.push_back(i < names.size() ? names[i] : std::to_string(c));
  }
  labels.emplace_back(kBackground);
  return labels;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + "\"";
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(int classes, const Options& options)
    : classes_(classes), options_(options) {
  if (classes > kMostClasses) {
    throw Error(ErrorCode::kUsage, "", "-confusion is for at most {} classes; this network has {}",
                kMostClasses, classes);
  }
  const auto side = static_cast<std::size_t>(classes) + 1;
  counts_.resize(side * side, 0);
}

std::int64_t& ConfusionMatrix::cell(int truth, int detected) {
  return counts_[static_cast<std::size_t>(truth) * (static_cast<std::size_t>(classes_) + 1) +
                 static_cast<std::size_t>(detected)];
}

std::int64_t ConfusionMatrix::at(int truth, int detected) const {
  return counts_[static_cast<std::size_t>(truth) * (static_cast<std::size_t>(classes_) + 1) +
                 static_cast<std::size_t>(detected)];
}

void ConfusionMatrix::add_image(const DetectionList& detections, std::span<const Truth> truths,
                                std::span<const Truth> difficult) {
  struct Found {
    Box box;
    int class_id;
  };
  std::vector<Found> found;
  for (std::size_t i = 0; i < detections.size(); ++i) {
    const int class_id = detections.best_class(i);
    if (class_id >= 0 && class_id < classes_ &&
        detections.best_probability(i) > options_.confidence_threshold) {
      found.push_back({detections[i].box, class_id});
    }
  }
  std::vector<Truth> wanted;
  for (const Truth& truth : truths) {
    if (truth.class_id >= 0 && truth.class_id < classes_ &&
        std::ranges::none_of(difficult,
                             [&](const Truth& each) { return is_same_object(each, truth); })) {
      wanted.push_back(truth);
    }
  }
  struct Pair {
    float iou;
    std::size_t truth, found;
  };
  std::vector<Pair> pairs;
  for (std::size_t t = 0; t < wanted.size(); ++t) {
    for (std::size_t f = 0; f < found.size(); ++f) {
      const float overlap = iou(wanted[t].box, found[f].box);
      if (overlap > options_.iou_threshold) pairs.push_back({overlap, t, f});
    }
  }
  // Equal overlaps go to a pair of one class, then to the stronger detection (lists are sorted).
  std::ranges::stable_sort(pairs, [&](const Pair& a, const Pair& b) {
    if (a.iou != b.iou) return a.iou > b.iou;
    const auto is_same = [&](const Pair& pair) {
      return wanted[pair.truth].class_id == found[pair.found].class_id;
    };
    if (is_same(a) != is_same(b)) return is_same(a);
    return a.found < b.found;
  });
  std::vector<bool> truth_taken(wanted.size()), found_taken(found.size());
  for (const Pair& pair : pairs) {
    if (truth_taken[pair.truth] || found_taken[pair.found]) continue;
    truth_taken[pair.truth] = found_taken[pair.found] = true;
    ++cell(wanted[pair.truth].class_id, found[pair.found].class_id);
  }
  for (std::size_t t = 0; t < wanted.size(); ++t) {
    if (!truth_taken[t]) ++cell(wanted[t].class_id, classes_);
  }
  for (std::size_t f = 0; f < found.size(); ++f) {
    if (found_taken[f] || std::ranges::any_of(difficult, [&](const Truth& each) {
          return each.class_id == found[f].class_id &&
                 iou(each.box, found[f].box) > options_.iou_threshold;
        })) {
      continue;
    }
    ++cell(classes_, found[f].class_id);
  }
}

std::string confusion_text(const ConfusionMatrix& matrix, std::span<const std::string> names) {
  const std::vector<std::string> labels = labels_of(matrix, names);
  std::vector<std::vector<std::string>> rows{{""}};
  for (const std::string& label : labels) rows[0].push_back(label);
  for (int truth = 0; truth <= matrix.classes(); ++truth) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(labels[static_cast<std::size_t>(truth)]);
    for (int detected = 0; detected <= matrix.classes(); ++detected) {
      const bool is_nothing = truth == matrix.classes() && detected == matrix.classes();
      row.push_back(is_nothing ? "-" : std::to_string(matrix.at(truth, detected)));
    }
  }
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = fmt::format(
      "\n confusion matrix, a row for each truth, a column for what was detected (conf_thresh = "
      "{:.2f}, IoU threshold = {:.0f} %)\n",
      matrix.options().confidence_threshold, 100 * matrix.options().iou_threshold);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      text += i == 0 ? " " + row[i] + blanks : "  " + blanks + row[i];
    }
    text += "\n";
  }
  return text;
}

std::string confusion_csv(const ConfusionMatrix& matrix, std::span<const std::string> names) {
  const std::vector<std::string> labels = labels_of(matrix, names);
  std::string text = "truth";
  for (const std::string& label : labels) text += "," + csv_field(label);
  text += "\n";
  for (int truth = 0; truth <= matrix.classes(); ++truth) {
    text += csv_field(labels[static_cast<std::size_t>(truth)]);
    for (int detected = 0; detected <= matrix.classes(); ++detected) {
      text += fmt::format(",{}", matrix.at(truth, detected));
    }
    text += "\n";
  }
  return text;
}

}  // namespace lantern::eval
