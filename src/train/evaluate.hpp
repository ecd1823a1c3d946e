#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/average_precision.hpp"
#include "eval/coco.hpp"
#include "eval/confusion.hpp"
#include "eval/list_inference.hpp"
#include "eval/map_report.hpp"
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
  bool coco = false;             ///< also COCO's twelve numbers
  bool confusion = false;        ///< also the confusion matrix
  bool drop_duplicates = false;  ///< exact duplicates of a truth box do not count
};

struct BadImage {
  std::string path;
  std::string reason;
};

struct EvaluateResult {
  eval::MapResult map;
  std::optional<eval::CocoResult> coco;            ///< when asked for
  std::optional<eval::ConfusionMatrix> confusion;  ///< when asked for
  std::string report;                              ///< the text of `detector map`
  std::string label_summary;    ///< what is wrong with the labels; empty: nothing
  std::int64_t images = 0;      ///< evaluated
  std::int64_t duplicates = 0;  ///< exact duplicates among the truth boxes, counted or dropped
  std::vector<BadImage> bad_images;
  double seconds = 0;

  /// What the reports show beside `map`; refers to this result.
  eval::MapExtras extras(bool curves = false) const {
    return {.coco = coco ? &*coco : nullptr,
            .confusion = confusion ? &*confusion : nullptr,
            .curves = curves};
  }
};

using EvaluateProgress = eval::ListProgress;

/// Mean average precision of a model over a list, with any forward batch; the last batch may be
/// smaller. Images that cannot be read are left out and named in the result. Throws kInvalidData
/// when the list is empty or no image of it can be read.
EvaluateResult evaluate_detector(exec::Model& model, const EvaluateOptions& options,
                                 std::span<const std::string> names,
                                 const EvaluateProgress& progress = {});

}  // namespace lantern::train
