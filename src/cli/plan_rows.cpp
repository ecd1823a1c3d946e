#include "cli/plan_rows.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "layers/lower.hpp"
#include "plan/checker.hpp"
#include "plan/cost.hpp"

namespace lantern::cli {

namespace {

constexpr std::int64_t kMostImages = 1 << 16;
constexpr int kQuickEvaluations = 200;

Bytes written_to_file(const plan::Program& program) {
  Bytes bytes = 0;
  for (const plan::Copy& out : program.of(graph::ProgramKind::kMiniBatch).outs) {
    const plan::Slot& slot = program.slots[out.slot];
    if (slot.tier == plan::Tier::kFile) bytes += slot.bytes;
  }
  return bytes;
}

}  // namespace

RowPlanner::RowPlanner(const layers::Network& network, const Budget& budget, int threads)
    : network_(network), budget_(budget), threads_(threads), meter_(threads, budget.device) {}

PlanRow RowPlanner::plan(std::int64_t mini_batch, Effort effort) {
  PlanRow row{.mini_batch = mini_batch};
  const std::int64_t batch = std::int64_t{network_.net.batch} * network_.net.time_steps;
  row.subdivisions = std::max<std::int64_t>(1, ceil_div(batch, mini_batch));
  const layers::Lowered lowered =
      layers::lower(network_, {.training = true, .mini_batch = mini_batch, .forward_batch = 0});
  const ops::Selection selection = ops::select(lowered.graph, {.threads = threads_});
  row.selected = selection.selected;
  if (budget_.is_here) {
    meter_.fill(selection, row.selected);
  } else {
    plan::set_costs(row.selected, budget_.device);
  }
  if (budget_.is_cpu())
    row.around = surroundings_of(network_, row.subdivisions * mini_batch, lowered.truth_floats);
  row.arena_budget = budget_.memory - row.around.sum();

  plan::PlanOptions options{.host_memory = budget_.host_memory,
                            .disk_memory = budget_.disk_memory,
                            .host = budget_.device.host,
                            .disk = budget_.device.disk,
                            .contention = budget_.device.contention,
                            .op_seconds = budget_.device.op_seconds};
  if (effort == Effort::kQuick) options.evaluations = kQuickEvaluations;
  row.program = plan::make_program(row.selected, options);
  if (row.program.arena_bytes > row.arena_budget) {
    options.memory = std::max<Bytes>(0, row.arena_budget);
    try {
      row.program = plan::make_program(row.selected, options);
    } catch (const Error& error) {
      // A row that does not fit is an answer; looking for the smallest budget first would be slow.
      if (error.code() != ErrorCode::kResource) throw;
      if (effort == Effort::kQuick) return row;
      row.smallest = plan::smallest_memory(row.selected, options) + row.around.sum();
      return row;
    }
  }
  plan::check(row.selected, row.program);
  row.fits = true;
  row.timeline =
      plan::replay(row.selected, row.program, graph::ProgramKind::kMiniBatch, budget_.device);
  for (const auto kind : {graph::ProgramKind::kCheck, graph::ProgramKind::kUpdate})
    row.seconds_update += plan::replay(row.selected, row.program, kind, budget_.device).seconds;
  row.limited = plan::limited_by(row.program, row.timeline, budget_.host_memory);
  row.file_writes = written_to_file(row.program);
  return row;
}

bool RowPlanner::is_good(const PlanRow& row) const {
  return row.fits && (!budget_.max_slowdown || row.slowdown() <= *budget_.max_slowdown);
}

std::int64_t RowPlanner::largest(std::int64_t from) {
  const std::int64_t unit = network_.net.time_steps;  // a mini-batch holds whole sequences
  std::int64_t good = from;
  std::int64_t bad = from * 2;
  while (bad <= kMostImages && is_good(plan(bad, Effort::kQuick))) {
    good = bad;
    bad *= 2;
  }
  if (bad > kMostImages) return good;
  // Eighths are near enough for a choice.
  while (bad - good > std::max(unit, good / 8)) {
    const std::int64_t middle = (good + bad) / 2 / unit * unit;
    (is_good(plan(middle, Effort::kQuick)) ? good : bad) = middle;
  }
  return good;
}

}  // namespace lantern::cli
