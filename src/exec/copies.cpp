#include "exec/copies.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lantern::exec {

using device::Direction;
using plan::Instruction;

Copies::Copies(const graph::Selected& selected, const plan::Program& program,
               const ExecutorOptions& options, std::shared_ptr<device::Arena> arena,
               std::uint32_t trace_source, device::Clock::time_point trace_start)
    : selected_(selected),
      program_(program),
      watchdog_seconds_(options.watchdog_seconds),
      copy_late_(options.copy_late),
      jobs_(std::make_shared<CopyJobs>()) {
  jobs_->arena = std::move(arena);
  jobs_->host = options.host;
  jobs_->file = options.file;
  jobs_->trace = options.trace;
  jobs_->trace_source = trace_source;
  jobs_->trace_start = trace_start;
  fix_jobs(options);
  std::size_t outs = 0;
  std::size_t ins = 0;
  for (const plan::InstructionList& list : program_.programs) {
    outs = std::max(outs, list.outs.size());
    ins = std::max(ins, list.ins.size());
  }
  if (options.virtual_device) {
    clock_.emplace(*options.virtual_device, outs, ins);
  } else if (outs + ins > 0) {
    out_ = std::make_unique<CopyStream>(Direction::kOut, jobs_, options.copy_cores);
    in_ = std::make_unique<CopyStream>(Direction::kIn, jobs_, options.copy_cores);
  }
}

void Copies::fix_jobs(const ExecutorOptions& options) {
  if (options.compare_copies) jobs_->hashes.resize(program_.slots.size());
  const auto fix = [&](const std::vector<plan::Copy>& copies, std::vector<CopyJob>& jobs) {
    for (const plan::Copy& copy : copies) {
      const plan::Buffer& buffer = program_.buffers[copy.buffer];
      const plan::Slot& slot = program_.slots[copy.slot];
      device::Tier* tier = slot.tier == plan::Tier::kHost ? jobs_->host.get() : jobs_->file.get();
      LANTERN_ASSERT(tier != nullptr, "a program that evicts has a tier to evict to");
      // Files are copied in whole pages; the rest of the last one belongs to the buffer.
      const Bytes bytes =
          round_up(buffer.bytes, slot.tier == plan::Tier::kFile ? plan::kFileAlignment : Bytes{1});
      LANTERN_ASSERT(bytes <= slot.bytes && slot.offset + slot.bytes <= tier->bytes(),
                     "slots lie inside their tier");
      jobs.push_back({.data = jobs_->arena->at(buffer.offset),
                      .bytes = bytes,
                      .tier = tier,
                      .offset = slot.offset,
                      .slot = copy.slot});
    }
  };
  for (std::size_t kind = 0; kind < program_.programs.size(); ++kind) {
    fix(program_.programs[kind].outs, jobs_->outs[kind]);
    fix(program_.programs[kind].ins, jobs_->ins[kind]);
  }
}

void Copies::begin(graph::ProgramKind kind) {
  if (clock_) {
    clock_->begin();
    started_ = made_ = {};
  }
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    CopyStream* copies = stream(direction).get();
    if (copies == nullptr || copies->begin(static_cast<std::size_t>(kind))) continue;
    throw Error(ErrorCode::kDevice, "",
                "{}, of an earlier run, is still under way: the device behind it does not answer",
                describe(direction, copies->current()));
  }
  kind_ = kind;
}

void Copies::out(std::uint32_t copy) {
  if (!clock_) return out_->start(copy + 1);
  const plan::Slot& slot = program_.slots[program_.of(kind_).outs[copy].slot];
  trace_virtual(Direction::kOut, copy, clock_->out(slot.tier, slot.bytes));
  started_[0] = copy + 1;
  if (!copy_late_) make_until(Direction::kOut, copy + 1);
}

void Copies::in(std::uint32_t copy) {
  if (!clock_) return in_->start(copy + 1);
  const plan::Slot& slot = program_.slots[program_.of(kind_).ins[copy].slot];
  trace_virtual(Direction::kIn, copy, clock_->in(slot.tier, slot.bytes));
  started_[1] = copy + 1;
  if (!copy_late_) make_until(Direction::kIn, copy + 1);
}

void Copies::make_until(Direction direction, std::uint32_t count) {
  std::uint32_t& made = made_[static_cast<std::size_t>(direction)];
  for (; made < count; ++made) {
    try {
      make_copy(*jobs_, jobs_->of(direction, static_cast<std::size_t>(kind_))[made], direction,
                control_);
    } catch (...) {
      fail(direction, made, std::current_exception());
    }
  }
}

void Copies::wait_out(std::uint32_t count) {
  if (!clock_) return wait(Direction::kOut, count);
  clock_->wait_out(count);
  make_until(Direction::kOut, count);
}

void Copies::wait_in(std::uint32_t count) {
  if (!clock_) return wait(Direction::kIn, count);
  clock_->wait_in(count);
  make_until(Direction::kIn, count);
}

void Copies::wait(Direction direction, std::uint32_t count) {
  CopyStream& waited = *stream(direction);
  const CopyStream::Outcome outcome = waited.wait(count, watchdog_seconds_);
  if (outcome != CopyStream::Outcome::kDone) fail(direction, waited, outcome);
  // What goes wrong the other way ends the run too, without waiting for it.
  const Direction opposite = direction == Direction::kOut ? Direction::kIn : Direction::kOut;
  if (CopyStream& other = *stream(opposite); other.failed())
    fail(opposite, other, CopyStream::Outcome::kFailed);
}

void Copies::finish() {
  if (clock_) {
    wait_out(started_[0]);
    wait_in(started_[1]);
  } else if (out_) {
    wait(Direction::kOut, out_->started());
    wait(Direction::kIn, in_->started());
  }
}

void Copies::abandon() noexcept {
  const double patience = std::min(watchdog_seconds_, 5.0);
  if (out_) out_->drain(patience);
  if (in_) in_->drain(patience);
}

void Copies::fail(Direction direction, CopyStream& copies, CopyStream::Outcome outcome) {
  const std::uint32_t copy = copies.current();
  if (outcome == CopyStream::Outcome::kFailed) fail(direction, copy, copies.error());
  throw Error(ErrorCode::kDevice, "",
              "{} has not moved a byte for {:.3g} s: the device behind it does not answer, or is "
              "much too slow for this plan",
              describe(direction, copy), watchdog_seconds_);
}

void Copies::fail(Direction direction, std::uint32_t copy, std::exception_ptr error) {
  try {
    std::rethrow_exception(std::move(error));
  } catch (const Error& caught) {
    throw Error(caught.code(), caught.where(), "{} ({})", caught.message(),
                describe(direction, copy));
  } catch (const std::exception& caught) {
    throw Error(ErrorCode::kInternal, "", "{} ({})", caught.what(), describe(direction, copy));
  }
}

std::string Copies::describe(Direction direction, std::uint32_t index) const {
  const plan::InstructionList& list = program_.of(kind_);
  const plan::Copy& copy = direction == Direction::kOut ? list.outs[index] : list.ins[index];
  const plan::Buffer& buffer = program_.buffers[copy.buffer];
  const plan::Slot& slot = program_.slots[copy.slot];
  // The op that made the buffer, or the first one that needs it.
  std::string op;
  bool reached = false;
  const auto start =
      direction == Direction::kOut ? Instruction::Kind::kOut : Instruction::Kind::kIn;
  for (const Instruction& instruction : list.instructions) {
    if (instruction.kind == start && instruction.index == index) reached = true;
    if (reached && (direction == Direction::kOut || !op.empty())) break;
    if (instruction.kind != Instruction::Kind::kRun || reached != (direction == Direction::kIn))
      continue;
    const plan::Run& run = list.runs[instruction.index];
    const graph::SelectedOp& made = selected_.ops[run.op];
    for (std::size_t i = 0; i < made.reads.size() + made.writes.size(); ++i) {
      if (list.operands[run.first_operand + i].buffer != copy.buffer) continue;
      op = made.op + " " + made.label;
    }
  }
  std::string text =
      fmt::format("the copy {} of {}", to_string(direction), selected_.tensors[buffer.tensor].name);
  if (buffer.images > 0) {
    text += fmt::format(", images {} to {},", buffer.first_image,
                        buffer.first_image + buffer.images - 1);
  }
  if (!op.empty()) text += (direction == Direction::kOut ? " made by " : " needed by ") + op;
  const device::Tier& tier = slot.tier == plan::Tier::kHost ? *jobs_->host : *jobs_->file;
  return text + (direction == Direction::kOut ? " to " : " from ") + tier.name();
}

void Copies::trace_virtual(Direction direction, std::uint32_t copy,
                           std::pair<double, double> seconds) {
  if (!jobs_->trace) return;
  jobs_->trace->add(
      direction == Direction::kOut ? Trace::kOut : Trace::kIn,
      {.kind = TraceEvent::Kind::kCopy,
       .program = static_cast<std::uint8_t>(kind_),
       .source = jobs_->trace_source,
       .index = copy,
       .begin_ns = static_cast<std::int64_t>((clock_->epoch() + seconds.first) * 1e9),
       .end_ns = static_cast<std::int64_t>((clock_->epoch() + seconds.second) * 1e9)});
}

}  // namespace lantern::exec
