#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lantern::test {

/// One tensor of a `.bin` file of a case.
struct GoldenTensor {
  std::string file;  ///< "infer.bin", "train.bin", "train_1.bin" ...
  std::string name;  ///< "output", "weight_updates" ...
  int layer = 0;     ///< -1: the network input
  std::string layer_type;
  std::vector<float> values;
};

struct GoldenUpdate {
  double learning_rate = 0;
  double cost_sum = 0;  ///< over the subdivisions
};

struct GoldenDetections {
  std::string key;
  double threshold = 0, nms = 0, beta = 0;
  std::string nms_kind;
  int image_w = 0, image_h = 0;
  bool letterbox = false;
  bool relative = true;
};

struct DetectionRow {
  int class_id = 0;
  double probability = 0, x = 0, y = 0, w = 0, h = 0, objectness = 0;
};

/// One entry of manifest.json with the data of its folder.
struct GoldenCase {
  std::string name;
  std::filesystem::path folder;
  bool trains = false;
  std::int64_t start_iteration = 0;
  std::int64_t mini_batch_images = 1, subdivisions = 1;
  double cost = 0;
  std::map<int, double> layer_costs;
  std::vector<GoldenUpdate> updates;
  std::vector<GoldenDetections> detections;
  std::vector<GoldenTensor> tensors;
  std::vector<float> images, truth;  ///< of the whole batch

  bool has_file(const std::string& file) const { return std::filesystem::exists(folder / file); }
  /// Rows of detections.csv of one key.
  std::vector<DetectionRow> rows(const std::string& key) const;
  /// Images or truth of one mini-batch.
  std::span<const float> mini_batch(const std::vector<float>& all, std::int64_t index) const;
};

struct GoldenTolerance {
  double infer = 0, train = 0, loss_delta = 0, gradients = 0, cost = 0, weights = 0, detections = 0;
};

/// manifest.json of the golden folder; the data of a case is read when it is asked for.
std::vector<std::string> golden_names();
GoldenTolerance golden_tolerance();
GoldenCase golden_case(const std::string& name);

/// max|a - r| / max(rms(r), floor): what the tolerances bound. Infinite when the sizes differ or a
/// value is no number.
double deviation(std::span<const float> actual, std::span<const float> reference,
                 double floor = 1e-3);

}  // namespace lantern::test
