#include "plan/timeline.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "plan/cost.hpp"

namespace lantern::plan {

namespace {

class Replay {
 public:
  Replay(const graph::Selected& selected, const Program& program, graph::ProgramKind kind,
         const DeviceSpec& device)
      : selected_(selected), program_(program), list_(program.of(kind)), device_(device) {
    time_.reached.reserve(list_.instructions.size());
    time_.runs.resize(list_.runs.size());
    time_.outs.resize(list_.outs.size());
    time_.ins.resize(list_.ins.size());
  }

  Timeline run() {
    for (const Instruction& instruction : list_.instructions) {
      pass(instruction);
      time_.reached.push_back(now_);
    }
    time_.seconds = std::max({now_, out_free_, in_free_});
    return std::move(time_);
  }

 private:
  void pass(const Instruction& instruction) {
    switch (instruction.kind) {
      case Instruction::Kind::kAlloc:
      case Instruction::Kind::kFree:
        break;
      case Instruction::Kind::kRun:
        compute(instruction.index);
        break;
      case Instruction::Kind::kOut: {
        const Slot& slot = program_.slots[list_.outs[instruction.index].slot];
        time_.outs[instruction.index] = queue(out_free_, link(slot).out_seconds(slot.bytes));
        break;
      }
      case Instruction::Kind::kIn: {
        const Slot& slot = program_.slots[list_.ins[instruction.index].slot];
        time_.ins[instruction.index] = queue(in_free_, link(slot).in_seconds(slot.bytes));
        break;
      }
      case Instruction::Kind::kWaitOut:
        wait(time_.outs, instruction.index);
        break;
      case Instruction::Kind::kWaitIn:
        wait(time_.ins, instruction.index);
        break;
    }
  }

  const LinkSpec& link(const Slot& slot) const {
    const LinkSpec& link = slot.tier == Tier::kHost ? device_.host : device_.disk;
    LANTERN_ASSERT(link.exists(), "the tier that a program copies to has a link");
    return link;
  }

  // A direction is one engine: a copy starts when it is asked for and those before it are done.
  Stretch queue(double& free, double seconds) const {
    const double start = std::max(now_, free);
    free = start + seconds;
    return {start, free};
  }

  void compute(std::uint32_t index) {
    const Run& run = list_.runs[index];
    const double alone = run_seconds(selected_.ops[run.op], run.images, device_.op_seconds);
    const bool copying = out_free_ > now_ || in_free_ > now_;
    const double seconds = alone * (copying ? device_.contention : 1.0);
    time_.runs[index] = {now_, now_ + seconds};
    time_.slowed += seconds - alone;
    if (run.again) time_.recomputing += alone;
    now_ += seconds;
  }

  void wait(const std::vector<Stretch>& copies, std::uint32_t count) {
    if (count == 0) return;
    const double done = copies[count - 1].end;
    time_.waiting += std::max(0.0, done - now_);
    now_ = std::max(now_, done);
  }

  const graph::Selected& selected_;
  const Program& program_;
  const InstructionList& list_;
  const DeviceSpec& device_;
  double now_ = 0, out_free_ = 0, in_free_ = 0;
  Timeline time_;
};

}  // namespace

Timeline replay(const graph::Selected& selected, const Program& program, graph::ProgramKind kind,
                const DeviceSpec& device) {
  return Replay(selected, program, kind, device).run();
}

}  // namespace lantern::plan
