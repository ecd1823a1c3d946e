#include "cli/detector.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "data/loader.hpp"
#include "device/machine.hpp"
#include "eval/inference.hpp"
#include "eval/map_report.hpp"
#include "eval/valid_writers.hpp"
#include "train/evaluate.hpp"

namespace lantern::cli {

namespace {

// "0.5", or "0.5:0.95" for COCO's mean over ten thresholds besides.
void read_iou_thresh(const std::string& text, train::EvaluateOptions& options) {
  options.coco = text == "0.5:0.95" || text == "0.50:0.95" || text == ".5:.95";
  const auto value = options.coco ? std::optional(0.5) : parse_float(text);
  if (!value || !(*value >= 0 && *value < 1)) {
    throw Error(ErrorCode::kUsage, "", "-iou_thresh is '{}', want 0 to 1, or 0.5:0.95", text);
  }
  options.iou_thresh = static_cast<float>(*value);
}

}  // namespace

int run_detector_map(const Arguments& arguments, Terminal& terminal) {
  reserve_json(arguments, terminal);
  watch_interrupts();
  train::EvaluateOptions options{.threads = loader_threads(arguments),
                                 .conf_thresh = static_cast<float>(arguments.number("thresh")),
                                 .points = static_cast<int>(arguments.integer("points"))};
  read_iou_thresh(arguments.text("iou_thresh"), options);
  const DetectorFiles files =
      read_detector_files(arguments.positionals[0], arguments.positionals[1], terminal);
  options.list = validation_list(files.data_file, terminal);
  options.difficult = files.data_file.file("difficult");
  options.drop_duplicates = arguments.has("drop_duplicates");
  options.letter_box = files.network.net.letter_box != 0;
  options.exif = files.network.net.exif == layers::Exif::kApply;
  const auto model =
      load_for_inference(files.network, arguments.positionals[2], arguments, terminal);

  const train::EvaluateResult result = train::evaluate_detector(
      *model, options, files.names, [&](std::int64_t done, std::int64_t total, double rate) {
        stop_if_interrupted(terminal);
        terminal.progress("map", done, total, rate, "images/s");
      });
  if (!result.label_summary.empty()) terminal.notice(result.label_summary);
  for (const train::BadImage& bad : result.bad_images) terminal.error(bad.reason);
  terminal.print(result.report);
  if (result.duplicates > 0) {
    terminal.notice(
        options.drop_duplicates
            ? fmt::format("{} exact duplicates of truth boxes were left out", result.duplicates)
            : fmt::format(
                  "{} of the {} truth boxes are exact duplicates, which can never be found; "
                  "-drop_duplicates leaves them out",
                  result.duplicates, result.map.truths));
  }
  terminal.notice(fmt::format("Total Detection Time: {:.0f} Seconds", result.seconds));
  if (arguments.has("json")) {
    terminal.print_json(
        eval::map_report_json(result.map, files.names, result.coco_map, arguments.has("curves")),
        arguments.text("json"));
  }
  const auto bad = static_cast<std::int64_t>(result.bad_images.size());
  return bad_images_code(bad, result.images + bad, arguments, terminal);
}

int run_detector_valid(const Arguments& arguments, Terminal& terminal) {
  watch_interrupts();
  const DetectorFiles files =
      read_detector_files(arguments.positionals[0], arguments.positionals[1], terminal);
  const data::ImageList list = data::read_image_list(validation_list(files.data_file, terminal));
  const auto writer = eval::make_valid_writer(files.data_file.text("eval", "voc"),
                                              {.folder = files.data_file.file("results", "results"),
                                               .name = arguments.text("out"),
                                               .names = files.names});
  const auto model =
      load_for_inference(files.network, arguments.positionals[2], arguments, terminal);
  eval::Inference inference(*model);
  const layers::NetSpec& net = files.network.net;
  const bool letter_box = net.letter_box != 0;
  data::EvalLoader loader({.images = list.images,
                           .eval = {.net_w = net.width,
                                    .net_h = net.height,
                                    .channels = net.channels,
                                    .letter_box = letter_box},
                           .batch = inference.batch(),
                           .threads = loader_threads(arguments),
                           .decode = {.exif = net.exif == layers::Exif::kApply},
                           .memory_left = device::memory_beside(model->executor().arena_bytes())});
  const auto total = static_cast<std::int64_t>(list.images.size());
  std::int64_t done = 0, bad = 0;
  const auto start = std::chrono::steady_clock::now();
  while (const data::EvalBatch* batch = loader.next()) {
    stop_if_interrupted(terminal);
    const auto count = static_cast<std::int64_t>(batch->items.size());
    inference.run(batch->images, count);
    for (std::int64_t i = 0; i < count; ++i) {
      const data::EvalItem& item = batch->items[static_cast<std::size_t>(i)];
      if (!item.error.empty()) {
        terminal.error(item.error);
        ++bad;
        continue;
      }
      // reference/training.md 16.1: low threshold, looser suppression than map.
      eval::Inference::Options decoding{.threshold = 0.001F, .nms_threshold = 0.6F};
      if (letter_box) decoding.letterboxed_image = {item.image_w, item.image_h};
      writer->add_image(list.images[static_cast<std::size_t>(item.index)],
                        {item.image_w, item.image_h}, inference.detections(i, decoding));
    }
    done += count;
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    terminal.progress("valid", done, total, static_cast<double>(done) / seconds, "images/s");
  }
  writer->finish();
  terminal.notice(
      fmt::format("Total Detection Time: {:.0f} Seconds",
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()));
  return bad_images_code(bad, total, arguments, terminal);
}

}  // namespace lantern::cli
