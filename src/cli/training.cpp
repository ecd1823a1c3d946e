#include "cli/training.hpp"

#include <cstdlib>

#include "cli/run_support.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace lantern::cli {

namespace {

std::string on_nan_word(const Arguments& arguments) {
  const std::string word = arguments.text("on_nan");
  if (!word.empty() && word != "stop" && word != "skip" && word != "rollback") {
    throw Error(ErrorCode::kUsage, "", "-on_nan is '{}', want stop, skip or rollback", word);
  }
  return word;
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

train::TrainSettings read_train_settings(const Arguments& arguments) {
  check_precision(arguments);
  train::TrainSettings settings{.data_file = arguments.positionals[0],
                                .cfg_file = arguments.positionals[1],
                                .clear = arguments.has("clear"),
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
  if (arguments.has("resume")) settings.resume = arguments.text("resume");
  if (const auto seed = arguments.given_integer("seed")) {
    settings.seed = static_cast<std::uint64_t>(*seed);
  }
  return settings;
}

int run_training(TrainNetwork* train, const train::TrainSettings& settings,
                 const Arguments& arguments, Terminal& terminal) {
  if (!arguments.has("dont_show")) {
    const bool display =
        std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
    terminal.notice(display ? "this version opens no window: the chart is written to a file"
                            : "no display was found: the chart is written to a file");
  }
  watch_interrupts();
  const train::TrainResult result = train(settings, terminal);
  terminal.notice(fmt::format("weights: {}\nchart: {}", result.final_weights, result.chart));
  return 0;
}

}  // namespace lantern::cli
