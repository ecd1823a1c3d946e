#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/average_precision.hpp"
#include "exec/model.hpp"

namespace lantern::train {

/// What `detector map` and `-map` measure; defaults are the reference's (training.md 16).
struct EvaluateOptions {
  std::filesystem::path list;       ///< of images
  std::filesystem::path difficult;  ///< list of label files of difficult objects; empty: none
  int threads = 1;                  ///< of the loader
  bool letter_box = false;
  bool exif = true;
  float conf_thresh = 0.25F;
  float iou_thresh = 0.5F;
  int points = 0;
  float score_thresh = 0.005F;  ///< detections below it are not collected
  float nms_thresh = 0.45F;
  /// Also the mean mAP over IoU thresholds 0.50, 0.55, .. 0.95 at 101 recalls, as COCO defines it.
  bool coco = false;
  bool drop_duplicates = false;  ///< exact duplicates of a truth box do not count
};

struct BadImage {
  std::string path;
  std::string reason;
};

struct EvaluateResult {
  eval::MapResult map;
  std::optional<double> coco_map;  ///< mAP@.50:.95, when asked for
  std::string report;              ///< the text of `detector map`
  std::string label_summary;       ///< what is wrong with the labels; empty: nothing
  std::int64_t images = 0;         ///< evaluated
  std::int64_t duplicates = 0;     ///< exact duplicates among the truth boxes, counted or dropped
  std::vector<BadImage> bad_images;
  double seconds = 0;
};

using EvaluateProgress =
    std::function<void(std::int64_t done, std::int64_t total, double images_per_second)>;

/// Mean average precision of a model over a list, with any forward batch; the last batch may be
/// smaller. Images that cannot be read are left out and named in the result. Throws kInvalidData
/// when the list is empty or no image of it can be read.
EvaluateResult evaluate_detector(exec::Model& model, const EvaluateOptions& options,
                                 std::span<const std::string> names,
                                 const EvaluateProgress& progress = {});

}  // namespace lantern::train
