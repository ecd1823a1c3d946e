#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "cli/number_lists.hpp"
#include "cli/plan_output.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "device/machine.hpp"
#include "plan/devices.hpp"
#include "train/schedule.hpp"

namespace lantern::cli {

namespace {

constexpr std::array kPlanFlags{
    Flag{.name = "device",
         .kind = ValueKind::kText,
         .value = "NAME|FILE",
         .otherwise = "cpu",
         .doc = "machine to plan for: cpu is this one, measured; rtx2070, h200, h200-tf32, m1000m, "
                "or a file of -write_device, by their figures"},
    Flag{.name = "memory",
         .kind = ValueKind::kText,
         .value = "SIZE",
         .doc = "memory that may be used: 6G, 75% of the device's, auto is all; on the CPU that of "
                "the whole process (default auto)"},
    Flag{.name = "host_memory",
         .kind = ValueKind::kText,
         .value = "SIZE",
         .doc = "host memory for what is evicted from a card (default auto, three quarters)"},
    Flag{.name = "disk_memory",
         .kind = ValueKind::kText,
         .value = "DIR:SIZE",
         .doc = "file for what is evicted (default none)"},
    Flag{.name = "max_slowdown",
         .kind = ValueKind::kText,
         .value = "PERCENT",
         .doc =
             "rows that are so much slower than with unlimited memory are marked and not advised"},
    Flag{
        .name = "largest",
        .doc =
            "also looks for the largest mini-batch that fits and is fast enough; may take minutes"},
    Flag{.name = "mini_batch",
         .kind = ValueKind::kText,
         .value = "N[,N...]",
         .doc =
             "images of a mini-batch, one row each (default batch / subdivisions; with a device, "
             "memory or slow-down given 8,16,32,64,128)"},
    Flag{.name = "size",
         .kind = ValueKind::kText,
         .value = "WxH",
         .doc = "input size, N for a square (default that of the cfg, or the largest that random= "
                "draws)"},
    Flag{.name = "threads",
         .kind = ValueKind::kInt,
         .value = "N",
         .doc = "compute threads that kernels are chosen for (default cores)",
         .min = 1,
         .max = 1024},
    Flag{.name = "json",
         .kind = ValueKind::kOptionalText,
         .value = "FILE",
         .doc = "the rows as JSON, to standard output or into FILE"},
    Flag{.name = "html",
         .kind = ValueKind::kText,
         .value = "FILE",
         .doc = "a page with the table, and memory and copies over time"},
    Flag{.name = "write_device",
         .kind = ValueKind::kText,
         .value = "FILE",
         .doc = "writes the device as text, to change it and give it to -device; needs no cfg"},
};

std::vector<std::int64_t> mini_batches(const Arguments& arguments, const layers::Network& network) {
  if (!arguments.has("mini_batch")) {
    for (const char* flag : {"device", "memory", "host_memory", "disk_memory", "max_slowdown"}) {
      if (!arguments.has(flag)) continue;
      std::vector<std::int64_t> sizes{8, 16, 32, 64, 128};
      for (std::int64_t& size : sizes) size *= network.net.time_steps;
      return sizes;
    }
    return {network.minibatch()};
  }
  return image_counts("mini_batch", arguments.text("mini_batch"));
}

// Random multi-scale training grows the network: what counts is the largest size that it draws.
std::string use_largest_size(layers::Network& network) {
  float random = 0;
  for (const layers::Layer& layer : network.layers) {
    if (const auto keys = layers::detection_keys(layer)) random = keys->random;
  }
  if (random <= 0) return {};
  const train::NetSize largest = train::largest_size(train::multi_scale_of(network, random, 0));
  const std::string text = fmt::format(
      "random={}: sizes change while training; planned for the largest, {}x{} (the cfg says "
      "{}x{}; -size plans for another)\n",
      random, largest.width, largest.height, network.net.width, network.net.height);
  network =
      layers::resized(network, static_cast<int>(largest.width), static_cast<int>(largest.height));
  return text;
}

std::string use_size(const Arguments& arguments, layers::Network& network) {
  if (!arguments.has("size")) return use_largest_size(network);
  const std::string text = arguments.text("size");
  const std::optional<PictureSize> size = picture_size(text);
  if (!size) {
    throw Error(ErrorCode::kUsage, "", "-size is '{}', want a width and a height like 608x608",
                text);
  }
  network = layers::resized(network, size->width, size->height);
  return {};
}

// The largest good row is where the search begins; when all rows are good, beyond the last.
std::int64_t largest_mini_batch(RowPlanner& planner, std::span<const PlanRow> rows) {
  std::int64_t good = 0;
  for (const PlanRow& row : rows) {
    if (planner.is_good(row)) good = std::max(good, row.mini_batch);
  }
  return good > 0 ? planner.largest(good) : 0;
}

}  // namespace

std::span<const Flag> plan_flags() { return kPlanFlags; }

int run_plan(const Arguments& arguments, Terminal& terminal) {
  if (arguments.has("json") && arguments.text("json").empty()) terminal.reserve_output();
  for (const char* flag : {"json", "html", "write_device"}) {
    if (arguments.has(flag) && !arguments.text(flag).empty()) check_writable(arguments.text(flag));
  }
  const int threads =
      static_cast<int>(arguments.given_integer("threads").value_or(device::usable_cores()));
  if (arguments.positionals.empty()) {
    if (!arguments.has("write_device")) {
      throw Error(ErrorCode::kUsage, "", "too few arguments; usage: lantern plan <cfg> [flags]");
    }
    const Budget budget = read_budget(arguments, threads);
    write_file_atomically(arguments.text("write_device"), plan::to_text(budget.device));
    return 0;
  }
  layers::Network network = layers::load_network_file(arguments.positionals.front());
  const std::string scales = use_size(arguments, network);
  const std::vector<std::int64_t> sizes = mini_batches(arguments, network);
  const Budget budget = read_budget(arguments, threads);
  if (arguments.has("write_device"))
    write_file_atomically(arguments.text("write_device"), plan::to_text(budget.device));

  RowPlanner planner(network, budget, threads);
  std::vector<PlanRow> rows;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    terminal.progress("planning", static_cast<std::int64_t>(i),
                      static_cast<std::int64_t>(sizes.size()), 0, "mini-batches");
    rows.push_back(planner.plan(sizes[i]));
  }
  const bool single = rows.size() == 1;
  PlanAnswer answer{network, budget, rows,
                    arguments.has("largest") ? largest_mini_batch(planner, rows) : 0};
  terminal.print(header_text(answer) + scales);
  if (single) terminal.print(holdings_text(rows.front(), budget));
  terminal.print(table_text(answer));
  if (!single) terminal.print(advice_text(answer));
  if (arguments.has("html")) write_file_atomically(arguments.text("html"), page_html(answer));
  if (arguments.has("json")) {
    terminal.print_json(
        to_json(answer).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
            "\n",
        arguments.text("json"));
  }
  return 0;
}

}  // namespace lantern::cli
