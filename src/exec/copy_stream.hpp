#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "device/arena.hpp"
#include "device/faults.hpp"
#include "device/tier.hpp"
#include "exec/trace.hpp"

namespace lantern::exec {

/// One copy with its addresses fixed.
struct CopyJob {
  std::byte* data = nullptr;
  Bytes bytes = 0;
  device::Tier* tier = nullptr;
  Bytes offset = 0;
  std::uint32_t slot = 0;
};

/// All copies of a network's programs, and what they touch. Kept alive by the threads that make
/// them.
struct CopyJobs {
  std::shared_ptr<device::Arena> arena;
  std::shared_ptr<device::Tier> host, file;
  std::array<std::vector<CopyJob>, graph::kProgramKinds> outs, ins;
  /// By slot: hash of what was copied there last. Empty: copies are not compared.
  std::vector<std::uint64_t> hashes;
  std::shared_ptr<Trace> trace;  ///< may be null
  std::uint32_t trace_source = 0;
  device::Clock::time_point trace_start{};

  const std::vector<CopyJob>& of(device::Direction direction, std::size_t program) const {
    return direction == device::Direction::kOut ? outs[program] : ins[program];
  }
};

/// Moves the bytes of one copy; with hashes, compares what comes in with what went out.
void make_copy(CopyJobs& jobs, const CopyJob& job, device::Direction direction,
               device::CopyControl& control);

/// A thread that makes the copies of one direction, one after the other in the order of the
/// program. Sleeps while there is nothing to do; neither it nor those who wait for it allocate
/// anything while all goes well.
class CopyStream {
 public:
  enum class Outcome : std::uint8_t { kDone, kFailed, kStuck };

  /// `cores`: where the thread stays; empty: anywhere.
  CopyStream(device::Direction direction, std::shared_ptr<CopyJobs> jobs,
             std::span<const int> cores);
  /// A copy that does not end even when it is given up keeps its thread, with what it needs.
  ~CopyStream();
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  /// A program starts. False: a copy of an earlier one is still under way.
  bool begin(std::size_t program);
  /// The first `count` copies of the program may be made.
  void start(std::uint32_t count);
  /// Until the first `count` copies are done. kStuck: nothing has moved for so many seconds.
  Outcome wait(std::uint32_t count, double watchdog_seconds);
  std::uint32_t started() const;
  bool failed() const;
  /// The copy that failed, or the one under way.
  std::uint32_t current() const;
  /// What the copy that failed has thrown.
  std::exception_ptr error() const;
  /// Gives up what is under way and leaves out what was not begun. False: it takes longer than
  /// `seconds`.
  bool drain(double seconds);

 private:
  struct State;
  static void work(State& state);
  void stop();

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace lantern::exec
