#include <nlohmann/json.hpp>

#include "cli/detector.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "data/labels.hpp"
#include "eval/average_precision.hpp"
#include "eval/list_inference.hpp"

namespace lantern::cli {

namespace {

float overlap_wanted(const Arguments& arguments) {
  const std::string text = arguments.text("iou_thresh");
  const auto value = parse_float(text);
  if (!value || !(*value >= 0 && *value < 1)) {
    throw Error(ErrorCode::kUsage, "", "-iou_thresh is '{}', want 0 to 1", text);
  }
  return static_cast<float>(*value);
}

std::string recall_json(const eval::RecallCounter& counter) {
  const nlohmann::ordered_json json{{"schema", 1},
                                    {"iou_thresh", counter.iou_threshold},
                                    {"images", counter.images},
                                    {"truths", counter.truths},
                                    {"found", counter.found},
                                    {"recall", counter.recall()},
                                    {"average_iou", counter.average_iou()},
                                    {"detections_per_image", counter.detections_per_image()}};
  return json.dump(2) + "\n";
}

}  // namespace

int run_detector_recall(const Arguments& arguments, Terminal& terminal) {
  reserve_json(arguments, terminal);
  watch_interrupts();
  eval::RecallCounter counter{.iou_threshold = overlap_wanted(arguments)};
  const DetectorFiles files =
      read_detector_files(arguments.positionals[0], arguments.positionals[1], terminal);
  const data::ImageList list = data::read_image_list(validation_list(files.data_file, terminal));
  const int threads = loader_threads(arguments);
  const data::LabelSet labels =
      data::scan_labels(list, {.classes = files.classes, .threads = threads});
  terminal.notice(labels.summary());
  const auto model =
      load_for_inference(files.network, arguments.positionals[2], arguments, terminal);
  eval::Inference inference(*model);
  std::int64_t bad = 0;
  const auto use = [&](const eval::ListImage& image) {
    if (!image.item.error.empty()) {
      terminal.error(image.item.error);
      ++bad;
      return;
    }
    std::vector<eval::Truth> truths;
    for (const data::Label& label : labels.labels[static_cast<std::size_t>(image.item.index)]) {
      truths.push_back({.box = {label.x, label.y, label.w, label.h}, .class_id = label.class_id});
    }
    // reference/training.md 16.1: by objectness, whatever nms_kind says.
    eval::DetectionList detections = inference.detections(
        image.place, {.threshold = eval::RecallCounter::kObjectness, .suppress = false});
    eval::suppress_by_objectness(detections, 0.4F);
    counter.add_image(detections, truths);
    terminal.notice(counter.line());
  };
  eval::run_list(*model, inference,
                 {.images = list.images,
                  .letter_box = false,  // as in Darknet, whatever the cfg says
                  .exif = files.network.net.exif == layers::Exif::kApply,
                  .threads = threads},
                 use, [&](std::int64_t, std::int64_t, double) { stop_if_interrupted(terminal); });
  const auto total = static_cast<std::int64_t>(list.images.size());
  if (counter.images == 0) {
    throw Error(ErrorCode::kInvalidData, list.path.string(), "none of its {} images can be read",
                total);
  }
  terminal.print(fmt::format(
      " IoU threshold = {:.0f} %, {} of {} truth boxes found\n recall = "
      "{:.2f} %, average IoU = {:.2f} %, detections per image = {:.2f}\n",
      100 * counter.iou_threshold, counter.found, counter.truths, 100 * counter.recall(),
      100 * counter.average_iou(), counter.detections_per_image()));
  if (arguments.has("json")) {
    terminal.print_json(recall_json(counter), arguments.text("json"));
  }
  return bad_images_code(bad, total, arguments, terminal);
}

}  // namespace lantern::cli
