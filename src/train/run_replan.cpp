#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "device/measure.hpp"
#include "exec/measure_machine.hpp"
#include "plan/timeline.hpp"
#include "train/run_memory.hpp"

// A plan is only as good as the times that it was made for: the same network is planned again when
// it turns out to run otherwise. Plans change no bit of a result, so that may be done between any
// two iterations.
namespace lantern::train {

namespace {

constexpr double kTolerated = 0.10;  // of the predicted time
constexpr double kWorthIt = 0.01;    // of the time, by prediction
constexpr Bytes kLinkTest = 8_MiB;

}  // namespace

bool RunMemory::runs_otherwise(std::int64_t iteration, double seconds) const {
  const plan::Program& program =
      programs_.at(key(shapes_->size(iteration), shapes_->mini_batch(iteration)));
  const plan::Prediction& predicted = program.prediction;
  const bool chooses = predicted.bytes_out > 0 || predicted.recompute_seconds > 0;
  return chooses && predicted.seconds > 0 && has_measured_device_ &&
         std::abs(seconds / predicted.seconds - 1) > kTolerated;
}

bool RunMemory::plan_again(std::int64_t iteration, double seconds) {
  const Key id = key(shapes_->size(iteration), shapes_->mini_batch(iteration));
  plan::Program& program = programs_.at(id);
  const double predicted = program.prediction.seconds;
  // Between iterations everything but the persistent tensors is free to measure on.
  meter_ = exec::CostMeter(settings_.threads, device_);
  meter_.borrow(std::span(arena_->at(program.persistent_bytes),
                          static_cast<std::size_t>(arena_->bytes() - program.persistent_bytes)));
  if (file_) device_.disk = device::measure(*file_, std::min(file_->bytes(), kLinkTest));

  exec::ModelOptions anew = options(shapes_->mini_batch(iteration), 0);
  if (id == first_) anew.shared = {};  // it was made when there was nothing to share
  exec::Compiled compiled = exec::select(network(shapes_->size(iteration)), anew);
  meter_.fill(compiled.selection, compiled.selection.selected);
  meter_.borrow({});
  const double now =
      plan::replay(compiled.selection.selected, program, graph::ProgramKind::kMiniBatch, device_)
          .seconds;
  anew.plan.memory = arena_->bytes();
  if (file_) anew.plan.disk_memory = file_->bytes();
  try {
    exec::make_plan(compiled, anew);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kResource) throw;
    return false;  // the search, whose ways the new times lead, found none within this memory
  }
  const double then = compiled.program.prediction.seconds;
  const bool better = then < now * (1 - kWorthIt);
  console_.notice(
      fmt::format("a mini-batch takes {:.3g} s, {:.3g} were predicted; measured again: {:.3g} s{}",
                  seconds, predicted, now,
                  better ? fmt::format(", and {:.3g} with the plan that takes its place", then)
                         : ", no other plan is faster"));
  if (better) program = std::move(compiled.program);
  return better;
}

}  // namespace lantern::train
