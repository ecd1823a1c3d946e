#include "train/evaluate.hpp"

#include <chrono>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "data/labels.hpp"
#include "data/lists.hpp"
#include "data/loader.hpp"
#include "device/machine.hpp"
#include "eval/inference.hpp"
#include "eval/map_report.hpp"

namespace lantern::train {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<eval::Truth> truths_of(const std::vector<data::Label>& labels,
                                   bool drop_duplicates = false) {
  std::vector<eval::Truth> truths;
  truths.reserve(labels.size());
  std::set<std::tuple<int, float, float, float, float>> seen;
  for (const data::Label& label : labels) {
    if (drop_duplicates &&
        !seen.emplace(label.class_id, label.x, label.y, label.w, label.h).second) {
      continue;
    }
    truths.push_back({.box = {label.x, label.y, label.w, label.h}, .class_id = label.class_id});
  }
  return truths;
}

// Labels of the difficult objects, parallel to the images: the i-th line of the list belongs to the
// i-th image, as in the reference.
std::vector<std::vector<data::Label>> read_difficult(const std::filesystem::path& path, int classes,
                                                     int threads, std::size_t images) {
  data::ImageList list = data::read_image_list(path);
  if (list.images.size() != images) {
    throw Error(ErrorCode::kInvalidData, path.string(),
                "lists {} files of difficult objects for {} images; one a line for every image",
                list.images.size(), images);
  }
  return data::scan_labels(list, {.classes = classes, .threads = threads}).labels;
}

}  // namespace

EvaluateResult evaluate_detector(exec::Model& model, const EvaluateOptions& options,
                                 std::span<const std::string> names,
                                 const EvaluateProgress& progress) {
  const auto start = Clock::now();
  eval::Inference inference(model);
  const layers::Network& network = model.network();
  const data::ImageList list = data::read_image_list(options.list);
  const data::LabelSet labels =
      data::scan_labels(list, {.classes = inference.classes(), .threads = options.threads});
  std::vector<std::vector<data::Label>> difficult;
  if (!options.difficult.empty()) {
    difficult =
        read_difficult(options.difficult, inference.classes(), options.threads, list.images.size());
  }

  EvaluateResult result;
  result.label_summary = labels.summary();
  result.duplicates = labels.counts[static_cast<std::size_t>(data::LabelIssueKind::kDuplicate)];
  eval::AveragePrecision precision(inference.classes());
  data::EvalLoader loader({.images = list.images,
                           .eval = {.net_w = network.net.width,
                                    .net_h = network.net.height,
                                    .channels = network.net.channels,
                                    .letter_box = options.letter_box},
                           .batch = inference.batch(),
                           .threads = options.threads,
                           .decode = {.exif = options.exif},
                           .memory_left = device::memory_beside(model.executor().arena_bytes())});
  const auto total = static_cast<std::int64_t>(list.images.size());
  std::int64_t done = 0;
  while (const data::EvalBatch* batch = loader.next()) {
    const auto count = static_cast<std::int64_t>(batch->items.size());
    inference.run(batch->images, count);
    for (std::int64_t i = 0; i < count; ++i) {
      const data::EvalItem& item = batch->items[static_cast<std::size_t>(i)];
      const auto index = static_cast<std::size_t>(item.index);
      if (!item.error.empty()) {
        result.bad_images.push_back({list.images[index], item.error});
        continue;
      }
      eval::Inference::Options decoding{.threshold = options.score_thresh,
                                        .nms_threshold = options.nms_thresh};
      if (options.letter_box) decoding.letterboxed_image = {item.image_w, item.image_h};
      precision.add_image(
          inference.detections(i, decoding),
          truths_of(labels.labels[index], options.drop_duplicates),
          difficult.empty() ? std::vector<eval::Truth>{} : truths_of(difficult[index]));
      ++result.images;
    }
    done += count;
    if (progress) progress(done, total, static_cast<double>(done) / seconds_since(start));
  }
  if (result.images == 0) {
    throw Error(ErrorCode::kInvalidData, options.list.string(),
                "none of its {} images can be read; the first: {}", total,
                result.bad_images.front().reason);
  }
  result.map = precision.result({.iou_threshold = options.iou_thresh,
                                 .confidence_threshold = options.conf_thresh,
                                 .points = options.points});
  if (options.coco) result.coco_map = precision.mean_over_iou();
  result.report = eval::map_report_text(result.map, names, result.coco_map);
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace lantern::train
