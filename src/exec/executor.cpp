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
      arena_(program_.arena_bytes) {
  std::vector<void*> operands;
  for (std::size_t i = 0; i < selection_.selected.ops.size(); ++i) {
    const graph::SelectedOp& op = selection_.selected.ops[i];
    operands.clear();
    for (const std::uint32_t tensor : op.reads)
      operands.push_back(arena_.at(program_.placements[tensor].offset));
    for (const std::uint32_t tensor : op.writes)
      operands.push_back(arena_.at(program_.placements[tensor].offset));
    selection_.kernels[i]->bind(operands);
  }
  profile_.resize(selection_.selected.ops.size());
  for (std::uint32_t i = 0; i < profile_.size(); ++i) profile_[i].op = i;
}

void Executor::run(graph::ProgramKind kind, const ops::RunContext& context) {
  omp_set_num_threads(threads_);  // oneDNN takes its team size from here; a per-thread setting
  for (const plan::Instruction& instruction : program_.of(kind)) {
    if (instruction.kind != plan::Instruction::Kind::kRun) continue;
    if (!profiling_) {
      selection_.kernels[instruction.index]->run(context);
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    selection_.kernels[instruction.index]->run(context);
    OpTime& time = profile_[instruction.index];
    time.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ++time.runs;
  }
}

std::optional<std::string> Executor::find_non_finite(graph::ProgramKind kind,
                                                     const ops::RunContext& context) {
  omp_set_num_threads(threads_);
  for (const plan::Instruction& instruction : program_.of(kind)) {
    if (instruction.kind != plan::Instruction::Kind::kRun) continue;
    selection_.kernels[instruction.index]->run(context);
    for (const std::uint32_t tensor : selection_.selected.ops[instruction.index].writes) {
      const graph::SelectedTensor& info = selection_.selected.tensors[tensor];
      if (info.dtype != DType::kF32 || info.role == graph::Role::kScratch) continue;
      const auto* values =
          reinterpret_cast<const float*>(arena_.at(program_.placements[tensor].offset));
      const auto count = static_cast<std::size_t>(info.bytes) / sizeof(float);
      if (!std::all_of(values, values + count, [](float v) { return std::isfinite(v); }))
        return info.name;
    }
  }
  return std::nullopt;
}

std::span<std::byte> Executor::bytes(graph::TensorId tensor) {
  const plan::Placement& placement = program_.placements[graph::index(tensor)];
  LANTERN_ASSERT(placement.offset >= 0, "only placed tensors have bytes");
  return {arena_.at(placement.offset), static_cast<std::size_t>(placement.bytes)};
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
