#include "golden_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "core/file.hpp"
#include "golden_folder.hpp"

namespace lantern::test {

namespace {

const nlohmann::json& manifest() {
  static const nlohmann::json json =
      nlohmann::json::parse(read_file(golden_folder() / "manifest.json"));
  return json;
}

std::vector<float> read_floats(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : manifest().at("cases"))
    names.push_back(entry.at("name").get<std::string>());
  return names;
}

GoldenTolerance golden_tolerance() {
  const nlohmann::json& t = manifest().at("default_tolerance");
  return {.infer = t.at("infer_output"),
          .train = t.at("train_output"),
          .loss_delta = t.at("loss_delta"),
          .gradients = t.at("gradients"),
          .cost = t.at("cost"),
          .weights = t.at("weights_change"),
          .detections = t.at("detections_abs")};
}

GoldenCase golden_case(const std::string& name) {
  const auto& all = manifest().at("cases");
  const auto entry =
      std::ranges::find_if(all, [&](const nlohmann::json& e) { return e.at("name") == name; });
  if (entry == all.end()) throw std::runtime_error("no golden case " + name);
  GoldenCase c{.name = name, .folder = golden_folder() / "cases" / name};
  const nlohmann::json& scalars = entry->at("scalars");
  c.trains = entry->at("training").get<bool>();
  c.start_iteration = scalars.at("start_iteration");
  c.mini_batch_images = scalars.at("batch");  // the reference divides at once
  c.subdivisions = scalars.at("subdivisions");
  if (c.trains) {
    c.cost = scalars.at("cost");
    for (const auto& layer : scalars.at("layer_costs")) {
      c.layer_costs[layer.at("layer").get<int>()] = layer.at("cost").get<double>();
    }
    for (const auto& update : scalars.at("updates")) {
      c.updates.push_back({update.at("learning_rate"), update.at("cost_sum_over_subdivisions")});
    }
    c.truth = read_floats(c.folder / "truth.bin");
  }
  if (entry->contains("detections")) {
    for (const auto& d : entry->at("detections")) {
      c.detections.push_back({.key = d.at("key"),
                              .threshold = d.at("thresh"),
                              .nms = d.at("nms"),
                              .beta = d.at("beta_nms"),
                              .nms_kind = d.at("nms_kind"),
                              .image_w = d.at("image_w"),
                              .image_h = d.at("image_h"),
                              .letterbox = d.at("letter").get<int>() != 0,
                              .relative = d.at("relative").get<int>() != 0});
    }
  }
  c.images = read_floats(c.folder / "input.bin");
  std::map<std::string, std::vector<float>> files;
  for (const auto& t : entry->at("tensors")) {  // [file, name, layer, layer type, offset, shape]
    GoldenTensor tensor{.file = t.at(0), .name = t.at(1), .layer = t.at(2), .layer_type = t.at(3)};
    std::size_t count = 1;
    for (const auto& extent : t.at(5)) count *= extent.get<std::size_t>();
    if (!files.contains(tensor.file)) files[tensor.file] = read_floats(c.folder / tensor.file);
    const std::span<const float> file = files[tensor.file];
    const std::span<const float> values = file.subspan(t.at(4).get<std::size_t>(), count);
    tensor.values.assign(values.begin(), values.end());
    c.tensors.push_back(std::move(tensor));
  }
  return c;
}

std::vector<DetectionRow> GoldenCase::rows(const std::string& key) const {
  std::vector<DetectionRow> found;
  std::istringstream csv(read_file(folder / "detections.csv"));
  std::string line;
  std::getline(csv, line);  // key,class,prob,x,y,w,h,objectness
  while (std::getline(csv, line)) {
    if (!line.starts_with(key + ",")) continue;
    std::ranges::replace(line, ',', ' ');
    std::istringstream fields(line);
    std::string word;
    DetectionRow row;
    fields >> word >> row.class_id >> row.probability >> row.x >> row.y >> row.w >> row.h >>
        row.objectness;
    found.push_back(row);
  }
  return found;
}

std::span<const float> GoldenCase::mini_batch(const std::vector<float>& all,
                                              std::int64_t index) const {
  const std::size_t size = all.size() / static_cast<std::size_t>(subdivisions);
  return std::span(all).subspan(static_cast<std::size_t>(index) * size, size);
}

double deviation(std::span<const float> actual, std::span<const float> reference, double floor) {
  if (actual.size() != reference.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  double squares = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double difference = std::abs(static_cast<double>(actual[i]) - reference[i]);
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, difference);
    squares += static_cast<double>(reference[i]) * reference[i];
  }
  const double rms =
      std::sqrt(squares / static_cast<double>(std::max<std::size_t>(actual.size(), 1)));
  return worst / std::max(rms, floor);
}

}  // namespace lantern::test
