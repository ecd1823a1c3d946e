#include "cli/plan_output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/darknet_layout.hpp"

namespace lantern::cli {

namespace {

std::string gib(Bytes bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / 0x1p30); }
// A size as a cfg holds it: exact, in the largest unit that is whole.
std::string size_text(Bytes bytes) {
  constexpr std::string_view kUnits = "GMK";
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    const Bytes unit = Bytes{1} << (30 - 10 * i);
    if (bytes > 0 && bytes % unit == 0) return fmt::format("{}{}", bytes / unit, kUnits[i]);
  }
  return fmt::format("{}", bytes);
}
std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

const PlanRow* best_row(const PlanAnswer& answer) {
  const PlanRow* best = nullptr;
  for (const PlanRow& row : answer.rows) {
    const bool fast = !answer.budget.max_slowdown || row.slowdown() <= *answer.budget.max_slowdown;
    if (row.fits && fast && (best == nullptr || row.mini_batch > best->mini_batch)) best = &row;
  }
  return best;
}

std::string link_text(const PlanAnswer& answer, const PlanRow& row) {
  const DeviceSpec& device = answer.budget.device;
  const LinkSpec* link = answer.budget.host_memory > 0   ? &device.host
                         : answer.budget.disk_memory > 0 ? &device.disk
                                                         : nullptr;
  const plan::PassSeconds passes = plan::pass_seconds(row.selected, device.op_seconds);
  if (link == nullptr || passes.forward <= 0 || passes.backward <= 0) return {};
  const auto saved = static_cast<double>(row.program.prediction.saved_bytes);
  return fmt::format("; copying all of it takes {:.2f} of forward's and {:.2f} of backward's time",
                     saved / link->out_bytes_per_second / passes.forward,
                     saved / link->in_bytes_per_second / passes.backward);
}

std::string tiers_text(const Budget& budget) {
  std::string text = fmt::format("{} of memory", format_bytes(budget.memory));
  if (budget.host_memory > 0)
    text += fmt::format(", {} of host memory", format_bytes(budget.host_memory));
  if (budget.disk_memory > 0) text += fmt::format(", {} on disk", format_bytes(budget.disk_memory));
  return text;
}

std::string darknet_text(const PlanAnswer& answer) {
  const auto layout = darknet_layout(answer.network, !answer.budget.is_cpu());
  if (!layout) return {};
  std::string sizes;
  for (const PlanRow& row : answer.rows) {
    sizes += fmt::format("{} mini-batch {} {}", sizes.empty() ? "" : ",", row.mini_batch,
                         format_bytes(layout->bytes(row.mini_batch)));
  }
  return fmt::format(
      "Darknet's own layout ({} build, layers and weights only) needs:{}; {} an image\n",
      answer.budget.is_cpu() ? "CPU" : "cuDNN", sizes, format_bytes(layout->per_image));
}

// The lines of [net] that ask for a row.
std::string cfg_text(const PlanAnswer& answer, const PlanRow& row) {
  const Budget& budget = answer.budget;
  std::string text =
      fmt::format("in [net] for mini-batch {}: batch={} subdivisions={} memory={}", row.mini_batch,
                  row.mini_batch * row.subdivisions, row.subdivisions, budget.memory_text);
  if (budget.host_memory > 0) text += fmt::format(" host_memory={}", size_text(budget.host_memory));
  if (!budget.disk_text.empty()) text += fmt::format(" disk_memory={}", budget.disk_text);
  return text + "\n";
}

}  // namespace

std::string header_text(const PlanAnswer& answer) {
  const layers::Network& network = answer.network;
  const Budget& budget = answer.budget;
  std::string text =
      fmt::format("{}: input {}x{}x{}, {} parameters, training in fp32 on {} ({})\n", network.path,
                  network.input().w, network.input().h, network.input().c, network.parameters(),
                  budget.is_here ? "the CPU" : budget.device.name,
                  budget.is_here ? "times measured here"
                                 : fmt::format("times by its figures: {:.4g} TFLOP/s, {:.4g} GB/s",
                                               budget.device.flops_per_second / 1e12,
                                               budget.device.memory_bytes_per_second / 1e9));
  text += "planned for " + tiers_text(budget);
  if (!budget.is_cpu()) text += "; the driver's own memory on the card comes on top";
  text += "\n";
  for (const PlanRow& row : answer.rows) {
    if (!row.fits || row.program.prediction.saved_bytes == 0) continue;
    text += fmt::format("saved for backward: {} an image{}\n",
                        format_bytes(row.program.prediction.saved_bytes / row.mini_batch),
                        link_text(answer, row));
    break;
  }
  return text;
}

std::string table_text(const PlanAnswer& answer) {
  const Budget& budget = answer.budget;
  const bool host = budget.host_memory > 0;
  const bool disk = budget.disk_memory > 0;
  std::string text = fmt::format("{:>10}  {:>13}", "mini-batch", "memory GiB");
  if (host) text += fmt::format("  {:>8}", "host GiB");
  if (disk) text += fmt::format("  {:>8}  {:>20}", "disk GiB", "written/1000 it. GiB");
  text += fmt::format("  {:>11}  {:>8}  {:>9}  {:>8}  {:>6}  {}\n", "s/iteration", "ms/image",
                      "slow-down", "bound", "chunks", "limited by");
  for (const PlanRow& row : answer.rows) {
    if (!row.fits) {
      text += fmt::format("{:>10}  does not fit: the smallest memory that works is {}\n",
                          row.mini_batch, format_bytes(row.smallest));
      continue;
    }
    text += fmt::format("{:>10}  {:>13}", row.mini_batch,
                        gib(budget.is_cpu() ? row.process() : row.program.arena_bytes) + " of " +
                            gib(budget.memory));
    if (host) text += fmt::format("  {:>8}", gib(row.program.host_bytes));
    if (disk) {
      text += fmt::format("  {:>8}  {:>20}", gib(row.program.file_bytes),
                          gib(row.file_writes * row.subdivisions * 1000));
    }
    const bool slow = budget.max_slowdown && row.slowdown() > *budget.max_slowdown;
    text +=
        fmt::format("  {:>11}  {:>8}  {:>9}  {:>8}  {:>6}  {}{}\n",
                    fmt::format("{:.3g}", row.seconds_per_iteration()),
                    fmt::format("{:.4g}", 1e3 * row.seconds() / row.mini_batch),
                    percent(row.slowdown()), percent(row.bound()), row.program.prediction.chunks,
                    row.limited, slow ? " (slower than asked for)" : "");
  }
  const layers::NetSpec& net = answer.network.net;
  if (net.batch <= 1) return text + "an iteration is one mini-batch\n";
  return text + fmt::format("iterations are of {} images or one mini-batch, whichever is more\n",
                            std::int64_t{net.batch} * net.time_steps);
}

std::string holdings_text(const PlanRow& row, const Budget& budget) {
  std::string text = fmt::format("mini-batch {}\n", row.mini_batch);
  const auto line = [&](std::string_view what, Bytes bytes) {
    text += fmt::format("  {:<58}{:>12}\n", what, format_bytes(bytes));
  };
  if (!row.fits) {
    return text + fmt::format("  does NOT fit into {}: the smallest memory that works is {}\n",
                              format_bytes(budget.memory), format_bytes(row.smallest));
  }
  const plan::Peak peak = plan::find_peak(row.selected, row.program);
  for (int use = 0; use < plan::kUses; ++use) {
    const Bytes bytes = peak.holding[static_cast<std::size_t>(use)];
    const auto kind = static_cast<plan::Use>(use);
    const bool always = kind != plan::Use::kPassing && kind != plan::Use::kRecomputed &&
                        kind != plan::Use::kPrefetched;
    if (bytes > 0 || always) line(to_string(kind), bytes);
  }
  if (peak.op != plan::kNone) {
    const graph::SelectedOp& op = row.selected.ops[peak.op];
    text += fmt::format("    (at the step that needs most, {}{})\n", op.op,
                        op.layer >= 0 ? fmt::format(" of layer {}", op.layer) : "");
  }
  line("arena: all of the above, placed", row.program.arena_bytes);
  if (budget.is_cpu()) {
    line(fmt::format("loader: {} iterations of pictures held ready", kLoaderQueue),
         row.around.loader);
    line("code and libraries, about", row.around.fixed);
    line("peak of the process, about", row.process());
  }
  return text + fmt::format("  fits into the {} that {}\n", format_bytes(budget.memory),
                            budget.is_cpu() ? "this process may use" : "it may take");
}

std::string advice_text(const PlanAnswer& answer) {
  std::string text;
  const std::string limit =
      answer.budget.max_slowdown
          ? fmt::format(" and is at most {} slower", percent(*answer.budget.max_slowdown))
          : "";
  const PlanRow* best = best_row(answer);
  if (answer.largest > 0) {
    text += fmt::format("the largest mini-batch that fits{}, to an eighth: {}\n", limit,
                        answer.largest);
  } else if (best != nullptr) {
    text += fmt::format("the largest of these that fits{}: {}\n", limit, best->mini_batch);
  } else {
    text += fmt::format("none of these fits{}; a smaller mini-batch needs less\n", limit);
  }
  if (best != nullptr) text += cfg_text(answer, *best);
  return text + darknet_text(answer);
}

nlohmann::ordered_json to_json(const PlanAnswer& answer) {
  const Budget& budget = answer.budget;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const PlanRow& row : answer.rows) {
    const bool slow = budget.max_slowdown && row.slowdown() > *budget.max_slowdown;
    nlohmann::ordered_json entry{{"mini_batch", row.mini_batch}, {"feasible", row.fits}};
    const auto if_fits = [&](const char* key, const nlohmann::ordered_json& value) {
      entry[key] = row.fits ? value : nlohmann::ordered_json(nullptr);
    };
    const plan::Prediction& p = row.program.prediction;
    if_fits("device_bytes", row.program.arena_bytes);
    if_fits("process_bytes", budget.is_cpu() ? nlohmann::ordered_json(row.process()) : nullptr);
    if_fits("host_bytes", row.program.host_bytes);
    if_fits("disk_bytes", row.program.file_bytes);
    if_fits("seconds_per_mini_batch", row.seconds());
    if_fits("seconds_per_iteration", row.seconds_per_iteration());
    if_fits("images_per_iteration", row.mini_batch * row.subdivisions);
    if_fits("slowdown_percent", 100 * row.slowdown());
    if_fits("bound_percent", 100 * row.bound());
    if_fits("chunks", p.chunks);
    if_fits("saved_bytes", p.saved_bytes);
    if_fits("bytes_out", p.bytes_out);
    if_fits("bytes_in", p.bytes_in);
    if_fits("recompute_seconds", row.timeline.recomputing);
    if_fits("waiting_seconds", row.timeline.waiting);
    if_fits("disk_bytes_written_per_1000_iterations", row.file_writes * row.subdivisions * 1000);
    if_fits("within_max_slowdown", !slow);
    entry["smallest_memory_bytes"] =
        row.fits ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(row.smallest);
    entry["limited_by"] = row.fits ? row.limited : "memory";
    rows.push_back(std::move(entry));
  }
  nlohmann::ordered_json document{
      {"schema", 1},
      {"network", answer.network.path},
      {"width", answer.network.net.width},
      {"height", answer.network.net.height},
      {"parameters", answer.network.parameters()},
      {"device", budget.device.name},
      {"memory_bytes", budget.memory},
      {"host_memory_bytes", budget.host_memory},
      {"disk_memory_bytes", budget.disk_memory},
      {"rows", std::move(rows)},
      {"largest_mini_batch", answer.largest > 0 ? nlohmann::ordered_json(answer.largest)
                                                : nlohmann::ordered_json(nullptr)}};
  if (const auto layout = darknet_layout(answer.network, !budget.is_cpu())) {
    document["darknet_bytes_per_image"] = layout->per_image;
    document["darknet_parameter_bytes"] = layout->parameters;
  }
  return document;
}

}  // namespace lantern::cli
