#include "exec/executor.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "core/log.hpp"
#include "device/pin.hpp"
#include "plan/cost.hpp"

namespace lantern::exec {

Executor::Executor(ops::Selection selection, plan::Program program, const ExecutorOptions& options)
    : selection_(std::move(selection)),
      program_(std::move(program)),
      threads_(options.threads),
      poison_(options.poison),
      arena_(options.arena),
      buffer_of_(program_.persistent),
      trace_(options.trace),
      trace_start_(trace_ ? trace_->start() : device::Clock::now()) {
  if (arena_ == nullptr) {
    arena_ = std::make_shared<device::Arena>(program_.arena_bytes,
                                             device::ArenaOptions{.guard = options.guard});
  }
  LANTERN_ASSERT(arena_->bytes() >= program_.arena_bytes, "a shared arena holds every program");
  omp_set_num_threads(threads_);  // primitives are made for the team that runs them
  if (!options.compute_cores.empty()) pin(options.compute_cores);
  for (std::size_t kind = 0; kind < program_.programs.size(); ++kind)
    fix_addresses(program_.programs[kind], addresses_[kind]);
  find_shared_buffers();
  profile_.resize(selection_.selected.ops.size());
  for (std::uint32_t i = 0; i < profile_.size(); ++i) profile_[i].op = i;
  if (trace_) trace_source_ = trace_->attach(selection_.selected, program_);
  copies_ = std::make_unique<Copies>(selection_.selected, program_, options, arena_, trace_source_,
                                     trace_start_);
}

void Executor::pin(const std::vector<int>& cores) const {
  // A refusal cannot leave a parallel region: this thread is asked first.
  device::pin_thread(pthread_self(), std::span(cores).first(1));
#pragma omp parallel num_threads(threads_)
  {
    const auto member = static_cast<std::size_t>(omp_get_thread_num());
    try {
      device::pin_thread(pthread_self(), std::span(cores).subspan(member % cores.size(), 1));
    } catch (const Error& error) {
      log::warning("{}", error.what());
    }
  }
}

void Executor::find_shared_buffers() {
  takes_over_.resize(program_.buffers.size());
  taken_over_.resize(program_.buffers.size());
  for (std::uint32_t i = 0; i < program_.buffers.size(); ++i) {
    const plan::Buffer& buffer = program_.buffers[i];
    if (buffer_of_[buffer.tensor] == plan::kNone && buffer.images == 0)
      buffer_of_[buffer.tensor] = i;
    if (buffer.alias_of == plan::kNone || buffer.alias_of == i) continue;
    takes_over_[i] = true;
    taken_over_[buffer.alias_of] = true;
  }
  for (std::uint32_t i = 0; i < program_.buffers.size(); ++i) {
    std::uint32_t root = i;
    while (takes_over_[root]) root = program_.buffers[root].alias_of;
    life_bytes_.push_back(program_.buffers[root].bytes);
  }
}

void Executor::fix_addresses(plan::InstructionList& list, std::vector<void*>& addresses) {
  for (const plan::Operand& operand : list.operands) {
    addresses.push_back(arena_->at(program_.buffers[operand.buffer].offset + operand.skip));
  }
  for (const plan::Run& run : list.runs) {
    if (run.images > 0) selection_.kernels[run.op]->prepare(run.images);
  }
}

void Executor::run_op(graph::ProgramKind kind, std::uint32_t index, ops::RunContext& context) {
  const plan::Run& run = program_.of(kind).runs[index];
  const graph::SelectedOp& op = selection_.selected.ops[run.op];
  context.first_image = run.first_image;
  context.images = run.images;
  context.all_images = op.images;
  selection_.kernels[run.op]->run(
      std::span(addresses_[static_cast<std::size_t>(kind)])
          .subspan(run.first_operand, op.reads.size() + op.writes.size()),
      context);
}

double Executor::op_seconds(const plan::Run& run) const {
  const graph::SelectedOp& op = selection_.selected.ops[run.op];
  return plan::run_seconds(op, op.images == 0 ? 0 : run.images, 0);
}

std::int64_t Executor::now_ns() const {
  if (const VirtualClock* clock = copies_->clock())
    return static_cast<std::int64_t>((clock->epoch() + clock->seconds()) * 1e9);
  return std::chrono::nanoseconds(device::Clock::now() - trace_start_).count();
}

double Executor::virtual_seconds() const {
  LANTERN_ASSERT(copies_->clock() != nullptr, "only a virtual device has a virtual clock");
  return copies_->clock()->seconds();
}

// A buffer that works in place of another shares its bytes: they live on, and keep what they hold.
void Executor::change_life(graph::ProgramKind kind, const plan::Instruction& instruction) {
  const std::uint32_t index = instruction.index;
  const bool begins = instruction.kind == plan::Instruction::Kind::kAlloc;
  if (begins ? takes_over_[index] : taken_over_[index]) return;
  const Bytes bytes = life_bytes_[index];
  if (poison_) {
    std::memset(arena_->at(program_.buffers[index].offset), 0xff, static_cast<std::size_t>(bytes));
  }
  live_ += begins ? bytes : -bytes;
  if (trace_) {
    const std::int64_t now = now_ns();
    trace_->add(Trace::kCompute, {.kind = TraceEvent::Kind::kLive,
                                  .program = static_cast<std::uint8_t>(kind),
                                  .source = trace_source_,
                                  .index = index,
                                  .begin_ns = now,
                                  .end_ns = now,
                                  .live = live_});
  }
}

void Executor::step(graph::ProgramKind kind, const plan::Instruction& instruction,
                    ops::RunContext& context) {
  using Kind = plan::Instruction::Kind;
  const std::uint32_t index = instruction.index;
  TraceEvent::Kind traced = TraceEvent::Kind::kRun;
  const std::int64_t begin = trace_ ? now_ns() : 0;
  switch (instruction.kind) {
    case Kind::kAlloc:
    case Kind::kFree:
      return change_life(kind, instruction);
    case Kind::kOut:
      return copies_->out(index);
    case Kind::kIn:
      return copies_->in(index);
    case Kind::kWaitOut:
      copies_->wait_out(index);
      traced = TraceEvent::Kind::kWaitOut;
      break;
    case Kind::kWaitIn:
      copies_->wait_in(index);
      traced = TraceEvent::Kind::kWaitIn;
      break;
    case Kind::kRun: {
      const plan::Run& run = program_.of(kind).runs[index];
      if (VirtualClock* clock = copies_->clock()) clock->run(op_seconds(run));
      if (!profiling_) {
        run_op(kind, index, context);
        break;
      }
      const auto start = std::chrono::steady_clock::now();
      run_op(kind, index, context);
      OpTime& time = profile_[run.op];
      time.seconds +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      ++time.runs;
      break;
    }
  }
  if (!trace_) return;
  trace_->add(Trace::kCompute, {.kind = traced,
                                .program = static_cast<std::uint8_t>(kind),
                                .source = trace_source_,
                                .index = index,
                                .begin_ns = begin,
                                .end_ns = now_ns()});
}

template <typename AfterRun>
void Executor::walk(graph::ProgramKind kind, const ops::RunContext& given, AfterRun after_run) {
  omp_set_num_threads(threads_);  // oneDNN takes its team size from here; a per-thread setting
  ops::RunContext context = given;
  copies_->begin(kind);
  live_ = program_.persistent_bytes;
  const std::int64_t begin = trace_ ? now_ns() : 0;
  try {
    for (const plan::Instruction& instruction : program_.of(kind).instructions) {
      step(kind, instruction, context);
      if (instruction.kind == plan::Instruction::Kind::kRun && !after_run(instruction.index)) {
        copies_->abandon();
        return;
      }
    }
    copies_->finish();
  } catch (...) {
    copies_->abandon();
    throw;
  }
  if (trace_) {
    trace_->add(Trace::kCompute, {.kind = TraceEvent::Kind::kProgram,
                                  .program = static_cast<std::uint8_t>(kind),
                                  .source = trace_source_,
                                  .begin_ns = begin,
                                  .end_ns = now_ns()});
  }
}

void Executor::run(graph::ProgramKind kind, const ops::RunContext& context) {
  walk(kind, context, [](std::uint32_t) { return true; });
}

std::optional<std::string> Executor::find_non_finite(graph::ProgramKind kind,
                                                     const ops::RunContext& context) {
  const plan::InstructionList& list = program_.of(kind);
  std::optional<std::string> found;
  walk(kind, context, [&](std::uint32_t index) {
    const plan::Run& run = list.runs[index];
    const graph::SelectedOp& op = selection_.selected.ops[run.op];
    const bool is_last = run.images == 0 || run.first_image + run.images == op.images;
    for (std::size_t i = 0; i < op.writes.size(); ++i) {
      const graph::SelectedTensor& info = selection_.selected.tensors[op.writes[i]];
      if (info.dtype != DType::kF32 || info.role == graph::Role::kScratch) continue;
      if (info.images == 0 && !is_last) continue;  // a sum that is not complete yet
      const plan::Operand& operand = list.operands[run.first_operand + op.reads.size() + i];
      const auto* values = reinterpret_cast<const float*>(
          arena_->at(program_.buffers[operand.buffer].offset + operand.skip));
      const Bytes bytes =
          info.images > 0 && run.images > 0 ? info.bytes / info.images * run.images : info.bytes;
      const auto count = static_cast<std::size_t>(bytes) / sizeof(float);
      if (std::all_of(values, values + count, [](float v) { return std::isfinite(v); })) continue;
      found = info.name;
      return false;
    }
    return true;
  });
  return found;
}

std::span<std::byte> Executor::bytes(graph::TensorId tensor) {
  const std::uint32_t buffer = buffer_of_[graph::index(tensor)];
  LANTERN_ASSERT(buffer != plan::kNone, "only tensors that are kept whole have bytes");
  const plan::Buffer& placed = program_.buffers[buffer];
  return {arena_->at(placed.offset), static_cast<std::size_t>(placed.bytes)};
}

std::span<const std::byte> Executor::bytes(graph::TensorId tensor) const {
  return const_cast<Executor*>(this)->bytes(tensor);
}

void Executor::write(graph::TensorId tensor, std::span<const float> plain) {
  const graph::SelectedTensor& info = selection_.selected.tensors[graph::index(tensor)];
  LANTERN_ASSERT(static_cast<std::int64_t>(plain.size()) == info.shape.elements(),
                 "a tensor is written whole");
  ops::from_plain(selection_.layouts[graph::index(tensor)], info.shape, plain.data(),
                  reinterpret_cast<float*>(bytes(tensor).data()));
}

void Executor::read(graph::TensorId tensor, std::span<float> plain) const {
  const graph::SelectedTensor& info = selection_.selected.tensors[graph::index(tensor)];
  LANTERN_ASSERT(static_cast<std::int64_t>(plain.size()) == info.shape.elements(),
                 "a tensor is read whole");
  ops::to_plain(selection_.layouts[graph::index(tensor)], info.shape,
                reinterpret_cast<const float*>(bytes(tensor).data()), plain.data());
}

std::vector<float> Executor::read(graph::TensorId tensor) const {
  const graph::SelectedTensor& info = selection_.selected.tensors[graph::index(tensor)];
  std::vector<float> plain(static_cast<std::size_t>(info.shape.elements()));
  read(tensor, plain);
  return plain;
}

std::span<std::byte> Executor::transients() const {
  return {arena_->at(program_.persistent_bytes),
          static_cast<std::size_t>(program_.arena_bytes - program_.persistent_bytes)};
}

void Executor::poison_transients() { std::memset(transients().data(), 0xff, transients().size()); }

void Executor::set_profiling(bool on) {
  profiling_ = on;
  for (OpTime& time : profile_) {
    time.seconds = 0;
    time.runs = 0;
  }
}

}  // namespace lantern::exec
