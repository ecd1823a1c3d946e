#include "train/run_refusal.hpp"

#include <algorithm>
#include <optional>

#include "core/error.hpp"

namespace lantern::train {

namespace {

std::string percent(double slowdown) { return fmt::format("{:.1f} % slower", 100 * slowdown); }

// As memory= would be written: whole MiB, and no less.
std::string setting(Bytes bytes) { return fmt::format("{}M", ceil_div(bytes, 1_MiB)); }

// The slow-down of a plan within the budget, or nothing when there is none.
std::optional<double> try_plan(exec::ModelOptions options, exec::Compiled& compiled, Bytes memory) {
  for (const Bytes most : {plan::PlanOptions::kUnlimited, memory}) {
    options.plan.memory = most;
    if (most <= 0) return std::nullopt;
    try {
      exec::make_plan(compiled, options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kResource) throw;
      return std::nullopt;
    }
    if (compiled.program.arena_bytes <= memory) return slowdown_of(compiled.program);
  }
  return std::nullopt;
}

struct Remedy {
  std::int64_t mini_batch = 0;
  double slowdown = 0;
};

// The largest smaller mini-batch that divides the batch and can be used.
std::optional<Remedy> smaller_mini_batch(const UnusablePlan& plan) {
  const std::int64_t batch = plan.network.net.batch;
  for (std::int64_t images = plan.options.mini_batch - 1; images >= 1; --images) {
    if (batch % images != 0) continue;
    exec::ModelOptions options = plan.options;
    options.mini_batch = images;
    exec::Compiled compiled = exec::select(plan.network, options);
    plan.costs(compiled);
    const std::optional<double> slowdown = try_plan(plan.options, compiled, plan.budget);
    if (slowdown && *slowdown <= plan.settings.max_slowdown.value_or(1e9))
      return Remedy{images, *slowdown};
  }
  return std::nullopt;
}

// What a file would do for this mini-batch; nothing where it does not help either.
std::string disk_remedy(const UnusablePlan& plan, exec::Compiled& compiled) {
  // Which disk it would be is not known: as fast as one that a laptop has.
  constexpr double kBytesPerSecond = 1e9;
  exec::ModelOptions options = plan.options;
  options.plan.disk_memory = plan::PlanOptions::kUnlimited;
  options.plan.disk = {.out_bytes_per_second = kBytesPerSecond,
                       .in_bytes_per_second = kBytesPerSecond,
                       .latency_seconds = 1e-4};
  const std::optional<double> slowdown = try_plan(options, compiled, plan.budget);
  if (!slowdown || compiled.program.file_bytes == 0) return "";
  return fmt::format("; or add disk_memory=FOLDER:{}G ({}, with a disk of 1 GB/s)",
                     ceil_div(compiled.program.file_bytes, 1_GiB), percent(*slowdown));
}

}  // namespace

double slowdown_of(const plan::Program& program) {
  const plan::Prediction& p = program.prediction;
  return p.seconds_unlimited > 0 ? std::max(0.0, p.seconds / p.seconds_unlimited - 1) : 0;
}

void refuse_plan(const UnusablePlan& plan) {
  const layers::NetSpec& net = plan.network.net;
  const std::int64_t mini_batch = plan.options.mini_batch;
  const Bytes process = plan.budget + plan.beside;
  std::string text = fmt::format("mini-batch {} at {} x {} ", mini_batch, net.width, net.height);
  exec::Compiled compiled{
      .lowered = {}, .selection = {.selected = plan.compiled.selection.selected}, .program = {}};
  plan::PlanOptions options = plan.options.plan;
  options.places = plan.options.shared.places;
  if (plan.fits) {
    text += fmt::format("would be {} than with unlimited memory, max_slowdown={:g}%",
                        percent(slowdown_of(plan.compiled.program)),
                        100 * plan.settings.max_slowdown.value_or(0));
  } else {
    const Bytes least = plan::smallest_memory(compiled.selection.selected, options);
    text += fmt::format(
        "does not fit in memory={} ({} of it beside the network); the smallest "
        "budget that works is memory={}",
        format_bytes(process), format_bytes(plan.beside), setting(least + plan.beside));
    if (const auto slowdown = try_plan(plan.options, compiled, least))
      text += fmt::format(" ({})", percent(*slowdown));
  }
  exec::ModelOptions unlimited = plan.options;
  unlimited.plan.memory = plan::PlanOptions::kUnlimited;
  exec::make_plan(compiled, unlimited);
  text += fmt::format("; memory={} keeps everything",
                      setting(compiled.program.arena_bytes + plan.beside));
  if (const auto remedy = smaller_mini_batch(plan)) {
    text +=
        fmt::format("; the largest mini-batch for this budget is {}: subdivisions={} ({})",
                    remedy->mini_batch, net.batch / remedy->mini_batch, percent(remedy->slowdown));
  } else {
    text += "; no mini-batch fits this budget at this size";
  }
  if (plan.settings.disk_memory == 0) text += disk_remedy(plan, compiled);
  throw Error(ErrorCode::kResource, plan.network.path, "{}", text);
}

}  // namespace lantern::train
