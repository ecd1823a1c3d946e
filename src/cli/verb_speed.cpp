#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "cli/bench_run.hpp"
#include "cli/run_support.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace lantern::cli {

namespace {

constexpr std::int64_t kUsualTics = 1000;

constexpr std::array kSpeedFlags{
    Flag{.name = "batch",
         .kind = ValueKind::kInt,
         .value = "N",
         .otherwise = "1",
         .doc = "images of an evaluation",
         .min = 1,
         .max = 4096},
    threads_flag(),
};

}  // namespace

std::span<const Flag> speed_flags() { return kSpeedFlags; }

int run_speed(const Arguments& arguments, Terminal& terminal) {
  const std::vector<std::string>& words = arguments.positionals;
  std::int64_t tics = kUsualTics;
  if (words.size() > 1) {
    const auto given = parse_int(words[1]);
    if (!given || *given < 1 || *given > 1000000)
      throw Error(ErrorCode::kUsage, "", "tics is '{}', want 1 to 1000000", words[1]);
    tics = *given;
  }
  watch_interrupts();
  const std::int64_t batch = arguments.integer("batch");
  const layers::Network network =
      layers::load_network_file(words[0], {.batch = 1, .subdivisions = 1, .time_steps = 1});
  const BenchResult result = run_case(
      {.network = network, .images = batch, .threads = compute_threads(arguments), .weights = {}},
      tics, false, terminal);
  const double all = std::accumulate(result.seconds.begin(), result.seconds.end(), 0.0);
  terminal.print(fmt::format(
      "{} evaluations of {} image{}, {} to warm up before them: {:f} seconds\n"
      "Speed: {:f} sec/eval (median)\nSpeed: {:f} Hz\n",
      tics, batch, batch == 1 ? "" : "s", kWarmUp, all, result.median(), 1 / result.median()));
  return 0;
}

}  // namespace lantern::cli
