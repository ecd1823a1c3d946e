#include "exec/executor.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core/error.hpp"

namespace lantern::exec {

Executor::Executor(ops::Selection selection, plan::Program program, int threads)
    : selection_(std::move(selection)),
      program_(std::move(program)),
      threads_(threads),
      arena_(program_.arena_bytes),
      buffer_of_(program_.persistent) {
  omp_set_num_threads(threads_);  // primitives are made for the team that runs them
  for (std::size_t kind = 0; kind < program_.programs.size(); ++kind)
    fix_addresses(program_.programs[kind], addresses_[kind]);
  for (std::uint32_t i = 0; i < program_.buffers.size(); ++i) {
    const plan::Buffer& buffer = program_.buffers[i];
    if (buffer_of_[buffer.tensor] == plan::kNone && buffer.images == 0)
      buffer_of_[buffer.tensor] = i;
  }
  profile_.resize(selection_.selected.ops.size());
  for (std::uint32_t i = 0; i < profile_.size(); ++i) profile_[i].op = i;
}

void Executor::fix_addresses(plan::InstructionList& list, std::vector<void*>& addresses) {
  for (const plan::Operand& operand : list.operands) {
    addresses.push_back(arena_.at(program_.buffers[operand.buffer].offset + operand.skip));
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

void Executor::run(graph::ProgramKind kind, const ops::RunContext& given) {
  omp_set_num_threads(threads_);  // oneDNN takes its team size from here; a per-thread setting
  ops::RunContext context = given;
  const plan::InstructionList& list = program_.of(kind);
  for (const plan::Instruction& instruction : list.instructions) {
    if (instruction.kind != plan::Instruction::Kind::kRun) continue;
    if (!profiling_) {
      run_op(kind, instruction.index, context);
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    run_op(kind, instruction.index, context);
    OpTime& time = profile_[list.runs[instruction.index].op];
    time.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ++time.runs;
  }
}

std::optional<std::string> Executor::find_non_finite(graph::ProgramKind kind,
                                                     const ops::RunContext& given) {
  omp_set_num_threads(threads_);
  ops::RunContext context = given;
  const plan::InstructionList& list = program_.of(kind);
  for (const plan::Instruction& instruction : list.instructions) {
    if (instruction.kind != plan::Instruction::Kind::kRun) continue;
    run_op(kind, instruction.index, context);
    const plan::Run& run = list.runs[instruction.index];
    const graph::SelectedOp& op = selection_.selected.ops[run.op];
    const bool is_last = run.images == 0 || run.first_image + run.images == op.images;
    for (std::size_t i = 0; i < op.writes.size(); ++i) {
      const graph::SelectedTensor& info = selection_.selected.tensors[op.writes[i]];
      if (info.dtype != DType::kF32 || info.role == graph::Role::kScratch) continue;
      if (info.images == 0 && !is_last) continue;  // a sum that is not complete yet
      const plan::Operand& operand = list.operands[run.first_operand + op.reads.size() + i];
      const auto* values = reinterpret_cast<const float*>(
          arena_.at(program_.buffers[operand.buffer].offset + operand.skip));
      const Bytes bytes =
          info.images > 0 && run.images > 0 ? info.bytes / info.images * run.images : info.bytes;
      const auto count = static_cast<std::size_t>(bytes) / sizeof(float);
      if (!std::all_of(values, values + count, [](float v) { return std::isfinite(v); }))
        return info.name;
    }
  }
  return std::nullopt;
}

std::span<std::byte> Executor::bytes(graph::TensorId tensor) {
  const std::uint32_t buffer = buffer_of_[graph::index(tensor)];
  LANTERN_ASSERT(buffer != plan::kNone, "only tensors that are kept whole have bytes");
  const plan::Buffer& placed = program_.buffers[buffer];
  return {arena_.at(placed.offset), static_cast<std::size_t>(placed.bytes)};
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

void Executor::poison_transients() {
  std::memset(arena_.at(program_.persistent_bytes), 0xff,
              static_cast<std::size_t>(program_.arena_bytes - program_.persistent_bytes));
}

void Executor::set_profiling(bool on) {
  profiling_ = on;
  for (OpTime& time : profile_) {
    time.seconds = 0;
    time.runs = 0;
  }
}

}  // namespace lantern::exec
