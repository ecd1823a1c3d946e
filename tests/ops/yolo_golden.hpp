#pragma once

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/file.hpp"
#include "core/text.hpp"
#include "ops/yolo_loss/yolo_loss.hpp"

/// A small reader of tests/data/golden/cases/<name>, enough for the [yolo] heads in them.
namespace lantern::test {

using Section = std::map<std::string, std::string>;

struct Tensor {
  std::vector<float> values;
  std::vector<std::int64_t> shape;
};

inline std::vector<float> read_floats(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

inline std::vector<float> parse_list(const std::string& text) {
  std::vector<float> values;
  for (const std::string_view part : split(text, ',')) {
    values.push_back(static_cast<float>(parse_float(trim(part)).value()));
  }
  return values;
}

struct GoldenCase {
  std::filesystem::path folder;
  std::vector<std::pair<std::string, Section>> sections;  // [net] first, then layer 0, 1, ...
  std::map<int, double> layer_cost;
  double cost = 0;
  int mini_batch = 0;
  std::vector<float> truth;
  std::int64_t truth_floats = 0;
  std::map<std::pair<std::string, int>, Tensor> train;  // (tensor name, layer)

  explicit GoldenCase(std::filesystem::path where) : folder(std::move(where)) {
    std::istringstream cfg(read_file(folder / "case.cfg"));
    for (std::string line; std::getline(cfg, line);) {
      if (line.starts_with("[")) {
        sections.emplace_back(line.substr(1, line.find(']') - 1), Section{});
      } else if (const auto at = line.find('='); at != std::string::npos) {
        sections.back().second[std::string(trim(line.substr(0, at)))] = trim(line.substr(at + 1));
      }
    }
    std::istringstream scalars(read_file(folder / "scalars.txt"));
    for (std::string line; std::getline(scalars, line);) {
      std::istringstream words(line);
      std::string key;
      words >> key;
      if (key == "batch") words >> mini_batch;
      if (key == "truth_floats_per_image") words >> truth_floats;
      if (key == "cost") words >> cost;
      if (key == "layer_cost") {
        int layer = 0;
        words >> layer >> layer_cost[layer];
      }
    }
    truth = read_floats(folder / "truth.bin");
    const std::vector<float> all = read_floats(folder / "train.bin");
    std::istringstream index(read_file(folder / "index.txt"));
    std::string file, name, type, shape;
    int layer = 0;
    std::int64_t offset = 0, count = 0;
    while (index >> file >> name >> layer >> type >> offset >> count >> shape) {
      if (file != "train.bin") continue;
      Tensor& tensor = train[{name, layer}];
      tensor.values.assign(all.begin() + offset, all.begin() + offset + count);
      for (const std::string_view extent : split(shape, 'x')) {
        tensor.shape.push_back(parse_int(extent).value());
      }
    }
  }

  std::vector<int> heads() const {
    std::vector<int> layers;
    for (std::size_t i = 1; i < sections.size(); ++i) {
      if (sections[i].first == "yolo") layers.push_back(static_cast<int>(i) - 1);
    }
    return layers;
  }

  ops::YoloParams params(int layer) const {
    const Section& keys = sections[static_cast<std::size_t>(layer) + 1].second;
    const auto number = [&](const char* key, double otherwise) {
      const auto at = keys.find(key);
      return at == keys.end() ? otherwise : parse_float(at->second).value();
    };
    const auto real = [&](const char* key, float otherwise) {
      return static_cast<float>(number(key, otherwise));
    };
    const auto kind = [&](const char* key, ops::IouKind absent) {
      const auto at = keys.find(key);
      if (at == keys.end()) return absent;
      if (at->second == "mse") return ops::IouKind::kMse;
      if (at->second == "giou") return ops::IouKind::kGiou;
      if (at->second == "diou") return ops::IouKind::kDiou;
      if (at->second == "ciou") return ops::IouKind::kCiou;
      return ops::IouKind::kIou;
    };
    ops::YoloParams p;
    p.classes = static_cast<int>(number("classes", 20));
    p.anchors = parse_list(keys.at("anchors"));
    for (const float m : parse_list(keys.at("mask"))) p.mask.push_back(static_cast<int>(m));
    p.max_truths = static_cast<int>(number("max", 200));
    p.ignore_thresh = real("ignore_thresh", p.ignore_thresh);
    p.truth_thresh = real("truth_thresh", p.truth_thresh);
    p.iou_thresh = real("iou_thresh", p.iou_thresh);
    p.iou_thresh_kind = kind("iou_thresh_kind", ops::IouKind::kIou);
    p.iou_loss = kind("iou_loss", ops::IouKind::kMse);
    p.iou_normalizer = real("iou_normalizer", p.iou_normalizer);
    p.obj_normalizer = real("obj_normalizer", p.obj_normalizer);
    p.cls_normalizer = real("cls_normalizer", p.cls_normalizer);
    p.max_delta = real("max_delta", p.max_delta);
    if (keys.contains("counters_per_class")) {
      for (const float c : parse_list(keys.at("counters_per_class"))) {
        p.counters_per_class.push_back(static_cast<int>(c));
      }
    }
    p.label_smooth_eps = real("label_smooth_eps", 0);
    p.objectness_smooth = number("objectness_smooth", 0) != 0;
    p.scale_x_y = real("scale_x_y", 1);
    p.focal_loss = number("focal_loss", 0) != 0;
    p.new_coords = number("new_coords", 0) != 0;
    p.show_details = number("show_details", 1) != 0;
    p.net_w = parse_int(sections[0].second.at("width")).value();
    p.net_h = parse_int(sections[0].second.at("height")).value();
    const Tensor& output = train.at({"output", layer});
    p.grid_h = output.shape[2];
    p.grid_w = output.shape[3];
    return p;
  }
};

/// max|a - r| / max(rms(r), 1e-3): the tolerance rule of the golden set.
inline double deviation(const std::vector<float>& a, const std::vector<float>& r) {
  if (a.size() != r.size()) return INFINITY;
  double squares = 0, worst = 0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    squares += static_cast<double>(r[i]) * r[i];
    const double d = std::abs(static_cast<double>(a[i]) - r[i]);
    worst = d <= worst ? worst : d;  // a NaN stays
  }
  return worst / std::max(std::sqrt(squares / static_cast<double>(r.size())), 1e-3);
}

}  // namespace lantern::test
