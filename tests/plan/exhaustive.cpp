#include "plan/exhaustive.hpp"

#include <algorithm>
#include <array>

#include "plan/emit.hpp"
#include "plan/segments.hpp"

namespace lantern::plan::test {

namespace {

Bytes persistent_bytes(const graph::Selected& selected) {
  Bytes bytes = 0;
  for (const graph::SelectedTensor& tensor : selected.tensors) {
    if (graph::is_persistent(tensor.role)) bytes += round_up(tensor.bytes, kAlignment);
  }
  return round_up(bytes, kFileAlignment);
}

class Searcher {
 public:
  Searcher(const graph::Selected& selected, const Problem& problem, const PlanOptions& options)
      : memory_(options.memory / kFileAlignment * kFileAlignment - persistent_bytes(selected)),
        scheduler_(problem, {.memory = memory_,
                             .host_memory = options.host_memory,
                             .disk_memory = options.disk_memory,
                             .host = options.host,
                             .disk = options.disk,
                             .contention = options.contention}) {}

  void consider(const Choices& choices) {
    ++tried_;
    scheduler_.set_memory(memory_);
    Bytes target = memory_;
    for (int round = 0; round < 3; ++round) {
      const Schedule& schedule = scheduler_.run(choices);
      if (!schedule.possible || schedule.overflow > 0 || schedule.tier_overflow > 0) return;
      if (best_ && schedule.seconds >= *best_) return;
      const Bytes excess = place(schedule).arena_bytes - memory_;
      if (excess <= 0) {
        best_ = schedule.seconds;
        return;
      }
      // Copies in that come later leave placement more room.
      target -= excess;
      if (target <= 0) return;
      scheduler_.set_memory(target);
    }
  }
  std::optional<double> best() const { return best_; }
  int tried() const { return tried_; }

 private:
  Bytes memory_;
  Scheduler scheduler_;
  std::optional<double> best_;
  int tried_ = 0;
};

}  // namespace

Problem whole_problem(const graph::Selected& selected, const PlanOptions& options) {
  std::vector<std::uint32_t> ops;
  for (std::uint32_t i = 0; i < selected.ops.size(); ++i) {
    if (selected.ops[i].program == graph::ProgramKind::kMiniBatch) ops.push_back(i);
  }
  const std::vector<Segment> segments = find_segments(selected, ops);
  return make_problem(selected, ops, segments, std::vector<int>(segments.size(), 1),
                      options.op_seconds);
}

std::optional<Exhaustive> search_exhaustively(const graph::Selected& selected,
                                              const Problem& problem, const PlanOptions& options,
                                              const std::vector<std::uint32_t>& free,
                                              const std::vector<Choices>& rest) {
  constexpr std::array kChoices{Choice::kKeep, Choice::kOffload, Choice::kRecompute};
  const bool moves = options.host_memory > 0 || options.disk_memory > 0;
  Searcher searcher(selected, problem, options);
  for (Choices choices : rest) {
    std::vector<std::size_t> digits(free.size(), 0);
    for (bool more = true; more;) {
      bool allowed = true;
      for (std::size_t i = 0; i < free.size(); ++i) {
        choices[free[i]] = kChoices[digits[i]];
        allowed &= digits[i] != 1 || moves;
        allowed &= digits[i] != 2 || problem.pieces[free[i]].can_recompute;
      }
      if (allowed) searcher.consider(choices);
      more = false;
      for (std::size_t& digit : digits) {
        if (++digit < kChoices.size()) {
          more = true;
          break;
        }
        digit = 0;
      }
    }
  }
  if (!searcher.best()) return std::nullopt;
  return Exhaustive{*searcher.best(), searcher.tried()};
}

}  // namespace lantern::plan::test
