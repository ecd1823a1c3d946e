#include <fmt/format.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "device/machine.hpp"
#include "exec/model.hpp"
#include "layers/network.hpp"
#include "train/schedule.hpp"

namespace lantern::cli {

namespace {

constexpr std::string_view kNoBudget =
    "this version plans with every tensor in memory and has no budget to plan for; "
    "a smaller mini-batch needs less";

constexpr std::array kPlanFlags{
    Flag{.name = "mini_batch",
         .kind = ValueKind::kText,
         .value = "N[,N...]",
         .doc = "images of a mini-batch, one row each (default batch / subdivisions)"},
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
    Flag{.name = "memory", .kind = ValueKind::kText, .value = "SIZE", .refusal = kNoBudget},
    Flag{.name = "host_memory", .kind = ValueKind::kText, .value = "SIZE", .refusal = kNoBudget},
    Flag{
        .name = "disk_memory", .kind = ValueKind::kText, .value = "DIR:SIZE", .refusal = kNoBudget},
    Flag{
        .name = "max_slowdown", .kind = ValueKind::kText, .value = "PERCENT", .refusal = kNoBudget},
};

/// Code, libraries (oneDNN compiles kernels of its own) and small things: measured as the resident
/// size of training processes minus their arena and loader queue, 25 to 31 MiB, rounded up.
constexpr Bytes kFixedBytes = 32_MiB;
/// Iterations that the loader holds ready, see data::LoaderSpec::queue.
constexpr std::int64_t kLoaderQueue = 2;

/// What training holds besides the arena.
struct Surroundings {
  Bytes loader = 0;   ///< pictures and truth of the iterations held ready
  Bytes weights = 0;  ///< the copy that a checkpoint is written from
  Bytes sum() const { return kFixedBytes + loader + weights; }
};

Surroundings around(const exec::Compiled& compiled, const layers::Network& network) {
  const std::int64_t floats = network.input().elements() + compiled.lowered.truth_floats;
  constexpr Bytes kFloat = sizeof(float);
  return {.loader = kLoaderQueue * std::int64_t{network.net.batch} * floats * kFloat,
          .weights = network.parameters() * kFloat};
}

struct Holdings {
  std::map<graph::Role, Bytes> persistent;
  std::map<graph::Role, Bytes> at_peak;  ///< transients alive in the step that needs most
  std::string peak_op;
  int peak_layer = -1;
};

// Walks the programs as the executor does and notes who is alive when most is.
Holdings measure(const exec::Compiled& compiled) {
  const graph::Selected& selected = compiled.selection.selected;
  const plan::Program& program = compiled.program;
  Holdings held;
  for (std::size_t i = 0; i < selected.tensors.size(); ++i) {
    if (graph::is_persistent(selected.tensors[i].role) && program.placements[i].offset >= 0) {
      held.persistent[selected.tensors[i].role] += program.placements[i].bytes;
    }
  }
  Bytes highest = -1;
  for (const auto& list : program.programs) {
    std::map<graph::Role, Bytes> live;
    Bytes sum = 0;
    for (const plan::Instruction& instruction : list) {
      if (instruction.kind == plan::Instruction::Kind::kRun) {
        if (sum <= highest) continue;
        highest = sum;
        held.at_peak = live;
        held.peak_op = selected.ops[instruction.index].op;
        held.peak_layer = selected.ops[instruction.index].layer;
        continue;
      }
      const Bytes bytes = program.placements[instruction.index].bytes;
      const bool born = instruction.kind == plan::Instruction::Kind::kAlloc;
      live[selected.tensors[instruction.index].role] += born ? bytes : -bytes;
      sum += born ? bytes : -bytes;
    }
  }
  return held;
}

Bytes of(const std::map<graph::Role, Bytes>& table, graph::Role role) {
  const auto found = table.find(role);
  return found == table.end() ? 0 : found->second;
}

std::string held_text(const exec::Compiled& compiled, std::int64_t mini_batch,
                      const Surroundings& surroundings) {
  using graph::Role;
  const Holdings held = measure(compiled);
  const plan::Program& program = compiled.program;
  const Bytes inputs = of(held.persistent, Role::kInput) + of(held.persistent, Role::kOutput);
  const Bytes transients = program.live_peak_bytes - program.persistent_bytes;
  std::string out = fmt::format("mini-batch {}\n", mini_batch);
  const auto row = [&](std::string_view what, Bytes bytes) {
    out += fmt::format("  {:<58}{:>12}\n", what, format_bytes(bytes));
  };
  row("parameters", of(held.persistent, Role::kParameter));
  row("gradients of parameters", of(held.persistent, Role::kParameterGradient));
  row("momentum and rolling statistics", of(held.persistent, Role::kState));
  row("images, truth and losses", inputs);
  row("activations and statistics saved for backward",
      of(held.at_peak, Role::kActivation) + of(held.at_peak, Role::kStatistic));
  row("gradients of activations", of(held.at_peak, Role::kGradient));
  row("scratch of the kernel", of(held.at_peak, Role::kScratch));
  out += fmt::format("    (the last three at the step that needs most, {}{}: {})\n", held.peak_op,
                     held.peak_layer >= 0 ? fmt::format(" of layer {}", held.peak_layer) : "",
                     format_bytes(transients));
  row("arena: all of the above, placed", program.arena_bytes);
  row(fmt::format("loader: {} iterations of pictures held ready", kLoaderQueue),
      surroundings.loader);
  row("copy of the weights while a checkpoint is written", surroundings.weights);
  row("code and libraries, about", kFixedBytes);
  row("peak of the process, about", program.arena_bytes + surroundings.sum());
  return out;
}

std::vector<std::int64_t> mini_batches(const Arguments& arguments, const layers::Network& network) {
  if (!arguments.has("mini_batch")) return {network.minibatch()};
  std::vector<std::int64_t> sizes;
  const std::string text = arguments.text("mini_batch");
  for (const std::string_view part : split(text, ',')) {
    const auto size = parse_int(trim(part));
    if (!size || *size < 1 || *size > (1 << 16)) {
      throw Error(ErrorCode::kUsage, "",
                  "-mini_batch is '{}', want numbers of images like 8,16,32, each 1 to 65536",
                  text);
    }
    sizes.push_back(*size);
  }
  return sizes;
}

// Random multi-scale training grows the network: what counts is the largest size that it draws.
std::string use_largest_size(layers::Network& network) {
  float random = 0;
  for (const layers::Layer& layer : network.layers) {
    if (const auto* yolo = std::get_if<layers::YoloSpec>(&layer.spec)) random = yolo->random;
    if (const auto* g = std::get_if<layers::GaussianYoloSpec>(&layer.spec)) random = g->random;
    if (const auto* region = std::get_if<layers::RegionSpec>(&layer.spec)) random = region->random;
  }
  if (random <= 0) return {};
  const train::NetSize largest = train::largest_size(train::multi_scale_of(network, random, 0));
  const std::string text = fmt::format(
      "random={}: sizes change while training; planned for the largest, {}x{} (the cfg says "
      "{}x{})\n",
      random, largest.width, largest.height, network.net.width, network.net.height);
  network =
      layers::resized(network, static_cast<int>(largest.width), static_cast<int>(largest.height));
  return text;
}

}  // namespace

std::span<const Flag> plan_flags() { return kPlanFlags; }

int run_plan(const Arguments& arguments, Terminal& terminal) {
  if (arguments.has("json") && arguments.text("json").empty()) terminal.reserve_output();
  const std::string& path = arguments.positionals.front();
  layers::Network network = layers::load_network_file(path);
  const std::string scales = use_largest_size(network);
  const int threads =
      static_cast<int>(arguments.given_integer("threads").value_or(device::usable_cores()));
  const Bytes machine = device::usable_memory();
  terminal.print(fmt::format("{}: input {}x{}x{}, {} parameters, training in fp32 on the CPU\n{}",
                             path, network.input().w, network.input().h, network.input().c,
                             network.parameters(), scales));
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::int64_t mini_batch : mini_batches(arguments, network)) {
    const exec::Compiled compiled = exec::compile(
        network,
        {.training = true, .mini_batch = mini_batch, .forward_batch = 0, .threads = threads});
    const Surroundings surroundings = around(compiled, network);
    const Bytes peak = compiled.program.arena_bytes + surroundings.sum();
    const bool fits = peak <= machine;
    terminal.print(held_text(compiled, mini_batch, surroundings) +
                   fmt::format("  {} the {} that this process may use\n",
                               fits ? "fits into" : "does NOT fit into", format_bytes(machine)));
    // Other tiers and times are not planned yet: null, not 0.
    rows.push_back({{"mini_batch", mini_batch},
                    {"feasible", fits},
                    {"device_bytes", compiled.program.arena_bytes},
                    {"host_bytes", nullptr},
                    {"disk_bytes", nullptr},
                    {"seconds_per_iteration", nullptr},
                    {"slowdown_percent", nullptr},
                    {"bound_percent", nullptr},
                    {"limited_by", nullptr}});
    if (!fits) rows.back()["limited_by"] = "memory";
  }
  if (arguments.has("json")) {
    const nlohmann::ordered_json document{{"schema", 1}, {"network", path}, {"rows", rows}};
    terminal.print_json(
        document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n",
        arguments.text("json"));
  }
  return 0;
}

}  // namespace lantern::cli
