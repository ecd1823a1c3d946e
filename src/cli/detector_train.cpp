#include <cstdlib>

#include "cli/detector.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "train/trainer.hpp"

namespace lantern::cli {

namespace {

std::string on_nan_word(const Arguments& arguments) {
  const std::string word = arguments.text("on_nan");
  if (word == "rollback") {
    throw Error(ErrorCode::kUsage, "",
                "-on_nan rollback is not available: this version can stop or skip");
  }
  if (!word.empty() && word != "stop" && word != "skip") {
    throw Error(ErrorCode::kUsage, "", "-on_nan is '{}', want stop or skip", word);
  }
  return word;
}

float iou_thresh(const Arguments& arguments) {
  const auto value = parse_float(arguments.text("iou_thresh"));
  if (!value || !(*value >= 0 && *value < 1)) {
    throw Error(ErrorCode::kUsage, "", "-iou_thresh is '{}', want 0 to 1",
                arguments.text("iou_thresh"));
  }
  return static_cast<float>(*value);
}

// Pictures on the sheet of -show_imgs; 0: no sheet.
int show_images(const Arguments& arguments) {
  constexpr int kUsual = 64, kMost = 1024;
  if (!arguments.has("show_imgs")) return 0;
  const std::string text = arguments.text("show_imgs");
  if (text.empty()) return kUsual;
  const auto count = parse_int(text);
  if (!count || *count < 1 || *count > kMost) {
    throw Error(ErrorCode::kUsage, "", "-show_imgs is '{}', want 1 to {} pictures", text, kMost);
  }
  return static_cast<int>(*count);
}

}  // namespace

int run_detector_train(const Arguments& arguments, Terminal& terminal) {
  check_precision(arguments);
  train::TrainSettings settings{.data_file = arguments.positionals[0],
                                .cfg_file = arguments.positionals[1],
                                .clear = arguments.has("clear"),
                                .map = arguments.has("map"),
                                .map_epochs = arguments.number("mAP_epochs"),
                                .thresh = static_cast<float>(arguments.number("thresh")),
                                .iou_thresh = iou_thresh(arguments),
                                .strict = arguments.has("strict"),
                                .threads = compute_threads(arguments),
                                .loader_threads = loader_threads(arguments),
                                .on_nan = on_nan_word(arguments),
                                .log_file = arguments.text("log"),
                                .chart_file = arguments.text("chart"),
                                .memory = arguments.text("memory"),
                                .host_memory = arguments.text("host_memory"),
                                .disk_memory = arguments.text("disk_memory"),
                                .max_slowdown = arguments.text("max_slowdown"),
                                .mini_batch = arguments.text("mini_batch"),
                                .trace_file = arguments.text("trace"),
                                .show_images = show_images(arguments)};
  if (arguments.positionals.size() > 2) settings.weights_file = arguments.positionals[2];
  if (const auto seed = arguments.given_integer("seed")) {
    settings.seed = static_cast<std::uint64_t>(*seed);
  }
  if (!arguments.has("dont_show")) {
    const bool display =
        std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
    terminal.notice(display ? "this version opens no window: the chart is written to a file"
                            : "no display was found: the chart is written to a file");
  }
  watch_interrupts();
  const train::TrainResult result = train::train_detector(settings, terminal);
  terminal.notice(fmt::format("weights: {}\nchart: {}", result.final_weights, result.chart));
  return 0;
}

}  // namespace lantern::cli
