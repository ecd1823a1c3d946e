#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/arena.hpp"
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

/// Walks the instruction lists of one network on the CPU. Owns the arena; allocates nothing after
/// construction.
class Executor {
 public:
  /// Makes every kernel ready and fixes the addresses of every run. Persistent tensors start as
  /// zeros.
  Executor(ops::Selection selection, plan::Program program, int threads);

  void run(graph::ProgramKind kind, const ops::RunContext& context);

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
  void set_profiling(bool on);
  const std::vector<OpTime>& profile() const { return profile_; }

  const graph::Selected& selected() const { return selection_.selected; }
  const plan::Program& program() const { return program_; }
  Bytes arena_bytes() const { return program_.arena_bytes; }

 private:
  // Address of every operand of a program's runs, parallel to InstructionList::operands.
  void fix_addresses(plan::InstructionList& list, std::vector<void*>& addresses);
  void run_op(graph::ProgramKind kind, std::uint32_t run, ops::RunContext& context);

  ops::Selection selection_;
  plan::Program program_;
  int threads_;
  device::Arena arena_;
  std::array<std::vector<void*>, graph::kProgramKinds> addresses_;
  std::vector<std::uint32_t> buffer_of_;  // by tensor: the buffer that holds all of it, else kNone
  bool profiling_ = false;
  std::vector<OpTime> profile_;
};

}  // namespace lantern::exec
