#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/arena.hpp"
#include "exec/copies.hpp"
#include "exec/executor_options.hpp"
#include "ops/kernel.hpp"
#include "ops/select.hpp"
#include "plan/program.hpp"

namespace lantern::exec {

/// Seconds spent in one op since profiling was switched on.
struct OpTime {
  std::uint32_t op = 0;
  double seconds = 0;
  std::int64_t runs = 0;
};

/// Walks the instruction lists of one network on the CPU, and has its copies made meanwhile.
/// Allocates nothing after construction.
class Executor {
 public:
  /// Makes every kernel ready and fixes the addresses of every run. Persistent tensors start as
  /// zeros.
  Executor(ops::Selection selection, plan::Program program, int threads)
      : Executor(std::move(selection), std::move(program), ExecutorOptions{.threads = threads}) {}
  Executor(ops::Selection selection, plan::Program program, const ExecutorOptions& options);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Throws when a copy fails or does not get on. What the program writes besides persistent
  /// tensors is lost then, and the next run starts anew.
  void run(graph::ProgramKind kind, const ops::RunContext& context);
  /// With a virtual device: seconds of the last run by the cost model.
  double virtual_seconds() const;

  /// Runs a program op by op and stops at the first f32 tensor that holds NaN or infinity; its
  /// name, or nothing. For finding the cause after a run has failed: as slow as reading everything
  /// that is written.
  std::optional<std::string> find_non_finite(graph::ProgramKind kind,
                                             const ops::RunContext& context);

  /// Values in plain row-major order, whatever the layout. f32 tensors only.
  void write(graph::TensorId tensor, std::span<const float> plain);
  void read(graph::TensorId tensor, std::span<float> plain) const;
  std::vector<float> read(graph::TensorId tensor) const;
  /// The tensor's own bytes, padding included: of a persistent tensor, or of one that the program
  /// keeps whole to its end (PlanOptions::keep_everything).
  std::span<std::byte> bytes(graph::TensorId tensor);
  std::span<const std::byte> bytes(graph::TensorId tensor) const;

  /// Fills every transient byte with NaN patterns before each program, so that a read before the
  /// write shows up.
  void poison_transients();
  /// Memory of the transients, for anybody while no program runs.
  std::span<std::byte> transients() const;
  void set_profiling(bool on);
  const std::vector<OpTime>& profile() const { return profile_; }

  const graph::Selected& selected() const { return selection_.selected; }
  const plan::Program& program() const { return program_; }
  Bytes arena_bytes() const { return program_.arena_bytes; }
  const std::shared_ptr<device::Arena>& arena() const { return arena_; }

 private:
  // Walks a program; `after_run(index)` says whether to go on.
  template <typename AfterRun>
  void walk(graph::ProgramKind kind, const ops::RunContext& given, AfterRun after_run);
  void step(graph::ProgramKind kind, const plan::Instruction& instruction,
            ops::RunContext& context);
  void pin(const std::vector<int>& cores) const;
  void find_shared_buffers();
  void change_life(graph::ProgramKind kind, const plan::Instruction& instruction);
  double op_seconds(const plan::Run& run) const;
  std::int64_t now_ns() const;
  // Address of every operand of a program's runs, parallel to InstructionList::operands.
  void fix_addresses(plan::InstructionList& list, std::vector<void*>& addresses);
  void run_op(graph::ProgramKind kind, std::uint32_t run, ops::RunContext& context);

  ops::Selection selection_;
  plan::Program program_;
  int threads_;
  bool poison_;
  std::shared_ptr<device::Arena> arena_;
  std::array<std::vector<void*>, graph::kProgramKinds> addresses_;
  std::vector<std::uint32_t> buffer_of_;  // by tensor: the buffer that holds all of it, else kNone
  std::vector<bool> takes_over_,
      taken_over_;                 // by buffer: works in place of another, or another of it
  std::vector<Bytes> life_bytes_;  // by buffer: of the first in its row of those in place
  std::shared_ptr<Trace> trace_;
  std::uint32_t trace_source_ = 0;
  device::Clock::time_point trace_start_;
  Bytes live_ = 0;
  std::unique_ptr<Copies> copies_;
  bool profiling_ = false;
  std::vector<OpTime> profile_;
};

}  // namespace lantern::exec
