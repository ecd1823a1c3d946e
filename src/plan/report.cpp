#include "plan/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "plan/cost.hpp"

namespace lantern::plan {

namespace {

using graph::ProgramKind;
using graph::Role;
using graph::Selected;

std::size_t at(Use use) { return static_cast<std::size_t>(use); }

Use use_of_persistent(Role role) {
  if (role == Role::kParameter || role == Role::kState) return Use::kParameters;
  return role == Role::kParameterGradient ? Use::kParameterGradients : Use::kImages;
}

/// Walks a program and knows at every instruction what is alive and what for.
class Walk {
 public:
  Walk(const Selected& selected, const Program& program, ProgramKind kind)
      : selected_(selected),
        program_(program),
        list_(program.of(kind)),
        use_(program.buffers.size(), Use::kPassing),
        alive_(program.buffers.size(), false) {
    for (std::size_t i = 0; i < selected.tensors.size(); ++i) {
      if (i < program.persistent.size() && program.persistent[i] != kNone)
        held_[at(use_of_persistent(selected.tensors[i].role))] +=
            program.buffers[program.persistent[i]].bytes;
    }
    find_saved();
  }

  const Holding& held() const { return held_; }

  void pass(const Instruction& instruction) {
    switch (instruction.kind) {
      case Instruction::Kind::kAlloc:
        alive_[instruction.index] = true;
        use_[instruction.index] = first_use(instruction.index, false);
        held_[at(use_[instruction.index])] += program_.buffers[instruction.index].bytes;
        break;
      case Instruction::Kind::kFree:
        alive_[instruction.index] = false;
        held_[at(use_[instruction.index])] -= program_.buffers[instruction.index].bytes;
        break;
      case Instruction::Kind::kIn:
        become(list_.ins[instruction.index].buffer, Use::kPrefetched);
        break;
      case Instruction::Kind::kRun:
        run(list_.runs[instruction.index]);
        break;
      default:
        break;
    }
  }

 private:
  std::uint32_t root(std::uint32_t buffer) const {
    while (program_.buffers[buffer].alias_of != kNone &&
           program_.buffers[buffer].alias_of != buffer)
      buffer = program_.buffers[buffer].alias_of;
    return buffer;
  }
  Role role(std::uint32_t buffer) const {
    return selected_.tensors[program_.buffers[buffer].tensor].role;
  }
  std::span<const Operand> operands(const Run& run) const {
    const graph::SelectedOp& op = selected_.ops[run.op];
    return std::span(list_.operands).subspan(run.first_operand, op.reads.size() + op.writes.size());
  }

  // A tensor is saved when backward reads it: a run behind the first one that makes gradients.
  void find_saved() {
    saved_.resize(selected_.tensors.size(), false);
    bool backward = false;
    for (const Run& run : list_.runs) {
      const graph::SelectedOp& op = selected_.ops[run.op];
      if (run.again) continue;
      backward = backward || std::ranges::any_of(op.writes, [&](std::uint32_t tensor) {
                   return selected_.tensors[tensor].role == Role::kGradient;
                 });
      if (!backward) continue;
      for (const std::uint32_t tensor : op.reads) saved_[tensor] = true;
    }
  }

  Use first_use(std::uint32_t buffer, bool again) const {
    switch (role(buffer)) {
      case Role::kScratch:
        return Use::kScratch;
      case Role::kGradient:
        return Use::kGradients;
      default:
        if (again) return Use::kRecomputed;
        return saved_[program_.buffers[buffer].tensor] ? Use::kSaved : Use::kPassing;
    }
  }

  void become(std::uint32_t buffer, Use use) {
    const std::uint32_t owner = root(buffer);
    if (!alive_[owner] || use_[owner] == use) return;
    held_[at(use_[owner])] -= program_.buffers[owner].bytes;
    held_[at(use)] += program_.buffers[owner].bytes;
    use_[owner] = use;
  }

  void run(const Run& run) {
    const std::span<const Operand> all = operands(run);
    const std::size_t reads = selected_.ops[run.op].reads.size();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::uint32_t buffer = all[i].buffer;
      if (i >= reads) {
        become(buffer, first_use(buffer, run.again));
      } else if (use_[root(buffer)] == Use::kPrefetched) {
        become(buffer, first_use(buffer, false));
      }
    }
  }

  const Selected& selected_;
  const Program& program_;
  const InstructionList& list_;
  std::vector<Use> use_;     // by buffer with bytes of its own
  std::vector<bool> alive_;  // likewise
  std::vector<bool> saved_;  // by tensor
  Holding held_{};
};

struct SlotChange {
  double seconds = 0;
  Tier tier = Tier::kHost;
  Bytes bytes = 0;
};

// A slot is full from the start of a copy out to the end of the last copy in before the next one.
std::vector<SlotChange> slot_changes(const Program& program, const InstructionList& list,
                                     const Timeline& timeline) {
  struct Life {
    double from = -1, to = -1;
  };
  std::vector<Life> open(program.slots.size());
  std::vector<SlotChange> changes;
  const auto close = [&](std::size_t slot) {
    const Life& life = open[slot];
    if (life.from < 0) return;
    changes.push_back({life.from, program.slots[slot].tier, program.slots[slot].bytes});
    changes.push_back({life.to, program.slots[slot].tier, -program.slots[slot].bytes});
  };
  for (const Instruction& instruction : list.instructions) {
    if (instruction.kind == Instruction::Kind::kOut) {
      const std::uint32_t slot = list.outs[instruction.index].slot;
      close(slot);
      open[slot] = {timeline.outs[instruction.index].start, timeline.outs[instruction.index].end};
    } else if (instruction.kind == Instruction::Kind::kIn) {
      open[list.ins[instruction.index].slot].to = timeline.ins[instruction.index].end;
    }
  }
  for (std::size_t slot = 0; slot < open.size(); ++slot) close(slot);
  std::ranges::stable_sort(changes, {}, &SlotChange::seconds);
  return changes;
}

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

}  // namespace

std::string_view to_string(Use use) {
  constexpr std::array<std::string_view, kUses> kNames{
      "parameters, momentum and rolling statistics",
      "gradients of parameters",
      "images, truth and losses",
      "activations and statistics saved for backward",
      "activations in passing",
      "activations made again",
      "activations copied in ahead",
      "gradients of activations",
      "scratch of the kernel"};
  return kNames[at(use)];
}

Bytes sum(const Holding& holding) {
  return std::accumulate(holding.begin(), holding.end(), Bytes{0});
}

std::vector<Moment> memory_over_time(const Selected& selected, const Program& program,
                                     ProgramKind kind, const Timeline& timeline) {
  const InstructionList& list = program.of(kind);
  Walk walk(selected, program, kind);
  std::vector<Moment> moments{{.device = walk.held()}};
  for (std::size_t i = 0; i < list.instructions.size(); ++i) {
    // A run's operands are alive while it runs: what it is preceded by counts from its start.
    const double before = i > 0 ? timeline.reached[i - 1] : 0;
    walk.pass(list.instructions[i]);
    if (walk.held() == moments.back().device) continue;
    if (moments.back().seconds == before) {
      // One picture a point in time: the larger, so that the peak is seen.
      if (sum(walk.held()) >= sum(moments.back().device) || moments.size() == 1)
        moments.back().device = walk.held();
      else
        moments.push_back({.seconds = before, .device = walk.held()});
    } else {
      moments.push_back({.seconds = before, .device = walk.held()});
    }
  }
  // The other tiers change at times of their own.
  std::vector<Moment> merged;
  const std::vector<SlotChange> changes = slot_changes(program, list, timeline);
  Bytes host = 0;
  Bytes file = 0;
  std::size_t next = 0;
  const auto change = [&] {
    const SlotChange& c = changes[next++];
    (c.tier == Tier::kHost ? host : file) += c.bytes;
  };
  for (const Moment& moment : moments) {
    while (next < changes.size() && changes[next].seconds < moment.seconds) {
      const double seconds = changes[next].seconds;
      while (next < changes.size() && changes[next].seconds == seconds) change();
      merged.push_back(
          {seconds, merged.empty() ? moment.device : merged.back().device, host, file});
    }
    while (next < changes.size() && changes[next].seconds == moment.seconds) change();
    merged.push_back({moment.seconds, moment.device, host, file});
  }
  while (next < changes.size()) {
    const double seconds = changes[next].seconds;
    change();
    merged.push_back({seconds, moments.back().device, host, file});
  }
  return merged;
}

Peak find_peak(const Selected& selected, const Program& program) {
  Peak peak;
  Bytes most = -1;
  for (int kind = 0; kind < graph::kProgramKinds; ++kind) {
    const auto program_kind = static_cast<ProgramKind>(kind);
    const InstructionList& list = program.of(program_kind);
    Walk walk(selected, program, program_kind);
    for (const Instruction& instruction : list.instructions) {
      walk.pass(instruction);
      if (instruction.kind != Instruction::Kind::kRun || sum(walk.held()) <= most) continue;
      most = sum(walk.held());
      peak = {walk.held(), list.runs[instruction.index].op, program_kind};
    }
  }
  return peak;
}

PassSeconds pass_seconds(const Selected& selected, double start_seconds) {
  PassSeconds seconds;
  bool backward = false;
  for (const graph::SelectedOp& op : selected.ops) {
    if (op.program != ProgramKind::kMiniBatch) continue;
    backward = backward || std::ranges::any_of(op.writes, [&](std::uint32_t tensor) {
                 return selected.tensors[tensor].role == Role::kGradient;
               });
    (backward ? seconds.backward : seconds.forward) += run_seconds(op, 0, start_seconds);
  }
  return seconds;
}

std::string limited_by(const Program& program, const Timeline& timeline, Bytes host_memory) {
  constexpr double kUnnoticed = 0.005;
  constexpr double kFull = 0.95;
  const Prediction& prediction = program.prediction;
  if (prediction.bytes_out == 0 && timeline.recomputing == 0) {
    return prediction.chunks > 1 ? "device memory; large layers run in chunks"
                                 : "nothing: all of it stays on the device";
  }
  std::string text = "device memory";
  if (host_memory > 0 &&
      static_cast<double>(program.host_bytes) > kFull * static_cast<double>(host_memory))
    text += " and host memory";
  const double base =
      prediction.seconds_unlimited > 0 ? prediction.seconds_unlimited : timeline.seconds;
  struct Part {
    double seconds;
    std::string_view what;
  };
  std::array parts{Part{timeline.waiting, "waiting for copies"},
                   Part{timeline.recomputing, "computing cheap layers again"},
                   Part{timeline.slowed, "copies that share its bandwidth"}};
  std::ranges::stable_sort(parts, std::greater{}, &Part::seconds);
  bool any = false;
  for (const Part& part : parts) {
    if (part.seconds < kUnnoticed * base) continue;
    text += fmt::format("{} {} {}", any ? "," : ";", percent(part.seconds / base), part.what);
    any = true;
  }
  if (!any) text += prediction.bytes_out > 0 ? "; copies are hidden" : "; hardly noticed";
  return text;
}

}  // namespace lantern::plan
