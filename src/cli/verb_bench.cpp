#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "cli/bench_report.hpp"
#include "cli/number_lists.hpp"
#include "cli/run_support.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "device/peak_memory.hpp"

namespace lantern::cli {

namespace {

constexpr std::array kBenchFlags{
    Flag{.name = "size",
         .kind = ValueKind::kText,
         .value = "N[,WxH...]",
         .doc = "sizes of the pictures, a row each (default that of the cfg)"},
    Flag{.name = "batch",
         .kind = ValueKind::kText,
         .value = "N[,N...]",
         .doc = "images of one pass, a row each (default 1; with -train batch / subdivisions)"},
    Flag{.name = "train", .doc = "training iterations instead of forward passes"},
    Flag{.name = "mini_batch",
         .kind = ValueKind::kText,
         .value = "N[,N...]",
         .doc = "another name of -batch",
         .needs = "train"},
    Flag{.name = "layers",
         .doc = "time of every layer and kernel, for each row (one row alone always has it)"},
    Flag{.name = "iterations",
         .kind = ValueKind::kInt,
         .value = "N",
         .otherwise = "10",
         .doc = "timed iterations, after two to warm up",
         .min = 1,
         .max = 1000000},
    threads_flag(),
    Flag{.name = "precision",
         .kind = ValueKind::kText,
         .value = "fp32",
         .otherwise = "fp32",
         .doc = "number form of the computation"},
    Flag{.name = "json",
         .kind = ValueKind::kOptionalText,
         .value = "FILE",
         .doc = "figures as JSON, to standard output or into FILE"},
};

std::vector<std::int64_t> counts_of(const Arguments& arguments, const layers::Network& network) {
  if (arguments.has("batch") && arguments.has("mini_batch")) {
    throw Error(ErrorCode::kUsage, "", "-batch and -mini_batch mean the same; give one of them");
  }
  for (const char* flag : {"batch", "mini_batch"}) {
    if (arguments.has(flag)) return image_counts(flag, arguments.text(flag));
  }
  return {arguments.has("train") ? network.minibatch() : 1};
}

// The network at every size that is asked for; what does not suit is refused before anything runs.
std::vector<layers::Network> networks_of(const Arguments& arguments,
                                         const layers::Network& network) {
  if (!arguments.has("size")) return {network};
  const std::string text = arguments.text("size");
  if (network.net.width == 0) {
    throw Error(ErrorCode::kUsage, "", "-size {}: {} reads {} numbers, no pictures", text,
                network.path, network.input().elements());
  }
  std::vector<layers::Network> networks;
  for (const PictureSize& size : picture_sizes("size", text))
    networks.push_back(layers::resized(network, size.width, size.height));
  return networks;
}

}  // namespace

std::span<const Flag> bench_flags() { return kBenchFlags; }

int run_bench(const Arguments& arguments, Terminal& terminal) {
  reserve_json(arguments, terminal);
  check_precision(arguments);
  watch_interrupts();
  const std::string& path = arguments.positionals.front();
  const bool is_training = arguments.has("train");
  const std::int64_t iterations = arguments.integer("iterations");
  const layers::Network given = layers::load_network_file(path);
  const std::vector<std::int64_t> counts = counts_of(arguments, given);
  const std::vector<layers::Network> networks = networks_of(arguments, given);
  const bool is_single = networks.size() * counts.size() == 1;
  const bool profiled = is_single || arguments.has("layers");

  std::vector<BenchResult> results;
  bool restarts = true;
  for (const layers::Network& network : networks) {
    for (const std::int64_t count : counts) {
      if (!results.empty()) restarts = device::restart_peak_memory() && restarts;
      results.push_back(
          run_case({.network = network,
                    .images = count,
                    .is_training = is_training,
                    .threads = compute_threads(arguments),
                    .weights = arguments.positionals.size() > 1 ? arguments.positionals[1] : ""},
                   iterations, profiled, terminal));
    }
  }
  terminal.print(fmt::format(
      "{}: {}, {} threads, fp32\nFPS: images per second, by the median of {} iterations\n{}", path,
      is_training ? "training" : "inference", compute_threads(arguments), iterations,
      summary_table(results)));
  if (!restarts)
    terminal.warning("the system restarts no peaks: memory is that of all rows so far");
  for (const BenchResult& result : results) {
    if (profiled) terminal.print(layer_tables(result));
  }
  if (!arguments.has("json")) return 0;
  nlohmann::ordered_json json{{"schema", 1},
                              {"network", path},
                              {"mode", is_training ? "train" : "inference"},
                              {"threads", compute_threads(arguments)},
                              {"precision", "fp32"}};
  if (is_single) {
    json.update(to_json(results.front()));
  } else {
    for (const BenchResult& result : results) json["rows"].push_back(to_json(result));
  }
  terminal.print_json(
      json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n",
      arguments.text("json"));
  return 0;
}

}  // namespace lantern::cli
