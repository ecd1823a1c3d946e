#pragma once

#include <memory>
#include <optional>
#include <string>

#include "exec/copy_stream.hpp"
#include "exec/executor_options.hpp"
#include "exec/virtual_clock.hpp"

namespace lantern::exec {

/// The copies of a network's programs as the compute stream sees them: started, and waited for.
/// Made by two threads, or by the caller against a virtual clock.
class Copies {
 public:
  /// The references must outlive it.
  Copies(const graph::Selected& selected, const plan::Program& program,
         const ExecutorOptions& options, std::shared_ptr<device::Arena> arena,
         std::uint32_t trace_source, device::Clock::time_point trace_start);

  void begin(graph::ProgramKind kind);
  void out(std::uint32_t copy);
  void in(std::uint32_t copy);
  /// Throw what a copy has thrown, or that one does not get on.
  void wait_out(std::uint32_t count);
  void wait_in(std::uint32_t count);
  /// The program's end: waits for what was started.
  void finish();
  /// The program was left early: nothing is under way when this returns, or begin() will say so.
  void abandon() noexcept;

  /// Null without a virtual device.
  VirtualClock* clock() { return clock_ ? &*clock_ : nullptr; }
  const VirtualClock* clock() const { return clock_ ? &*clock_ : nullptr; }

 private:
  void fix_jobs(const ExecutorOptions& options);
  void make_until(device::Direction direction, std::uint32_t count);
  void wait(device::Direction direction, std::uint32_t count);
  void trace_virtual(device::Direction direction, std::uint32_t copy,
                     std::pair<double, double> seconds);
  [[noreturn]] void fail(device::Direction direction, CopyStream& stream,
                         CopyStream::Outcome outcome);
  [[noreturn]] void fail(device::Direction direction, std::uint32_t copy, std::exception_ptr error);
  std::string describe(device::Direction direction, std::uint32_t copy) const;
  std::unique_ptr<CopyStream>& stream(device::Direction direction) {
    return direction == device::Direction::kOut ? out_ : in_;
  }

  const graph::Selected& selected_;
  const plan::Program& program_;
  double watchdog_seconds_;
  bool copy_late_;
  std::shared_ptr<CopyJobs> jobs_;
  std::unique_ptr<CopyStream> out_, in_;  // null without copies and with a virtual clock
  std::optional<VirtualClock> clock_;
  graph::ProgramKind kind_ = graph::ProgramKind::kMiniBatch;
  // With a virtual clock: copies started and made, by direction.
  std::array<std::uint32_t, 2> started_{}, made_{};
  device::CopyControl control_;
};

}  // namespace lantern::exec
