#include "cli/detector.hpp"
#include "cli/map_files.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "eval/map_report.hpp"
#include "train/evaluate.hpp"

namespace lantern::cli {

namespace {

// "0.5", or "0.5:0.95" for COCO's numbers besides.
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
  const std::string report = arguments.has("report") ? arguments.text("report") : std::string();
  if (!report.empty()) {
    prepare_map_files(report);
    options.coco = true;
  }
  options.confusion = arguments.has("confusion") ||
                      (!report.empty() && files.classes <= eval::ConfusionMatrix::kMostClasses);
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
        eval::map_report_json(result.map, files.names, result.extras(arguments.has("curves"))),
        arguments.text("json"));
  }
  if (!report.empty()) {
    write_map_files(report, result, files.names);
    terminal.notice(fmt::format("Report in {}", report));
  }
  const auto bad = static_cast<std::int64_t>(result.bad_images.size());
  return bad_images_code(bad, result.images + bad, arguments, terminal);
}

}  // namespace lantern::cli
