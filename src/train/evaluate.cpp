#include "train/evaluate.hpp"

#include <chrono>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "data/labels.hpp"
#include "data/lists.hpp"

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
  std::optional<eval::CocoMetrics> coco;
  if (options.coco) coco.emplace(inference.classes());
  if (options.confusion) {
    result.confusion.emplace(inference.classes(), eval::ConfusionMatrix::Options{
                                                      .iou_threshold = options.iou_thresh,
                                                      .confidence_threshold = options.conf_thresh});
  }
  const auto use = [&](const eval::ListImage& image) {
    const auto index = static_cast<std::size_t>(image.item.index);
    if (!image.item.error.empty()) {
      result.bad_images.push_back({list.images[index], image.item.error});
      return;
    }
    const eval::ImageSize size{image.item.image_w, image.item.image_h};
    eval::Inference::Options decoding{.threshold = options.score_thresh,
                                      .nms_threshold = options.nms_thresh};
    if (options.letter_box) decoding.letterboxed_image = {size.width, size.height};
    const eval::DetectionList detections = inference.detections(image.place, decoding);
    const std::vector<eval::Truth> truths =
        truths_of(labels.labels[index], options.drop_duplicates);
    const std::vector<eval::Truth> ignored =
        difficult.empty() ? std::vector<eval::Truth>{} : truths_of(difficult[index]);
    precision.add_image(detections, truths, ignored);
    if (coco) coco->add_image(detections, size, truths, ignored);
    if (result.confusion) result.confusion->add_image(detections, truths, ignored);
    ++result.images;
  };
  eval::run_list(model, inference,
                 {.images = list.images,
                  .letter_box = options.letter_box,
                  .exif = options.exif,
                  .threads = options.threads},
                 use, progress);
  if (result.images == 0) {
    throw Error(ErrorCode::kInvalidData, options.list.string(),
                "none of its {} images can be read; the first: {}", list.images.size(),
                result.bad_images.front().reason);
  }
  result.map = precision.result({.iou_threshold = options.iou_thresh,
                                 .confidence_threshold = options.conf_thresh,
                                 .points = options.points});
  if (coco) result.coco = coco->result();
  result.report = eval::map_report_text(result.map, names, result.extras());
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace lantern::train
