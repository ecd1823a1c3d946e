#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "device/futex.hpp"
#include "graph/selected.hpp"
#include "plan/program.hpp"

namespace lantern::exec {

/// One thing that happened, or a change of the live bytes.
struct TraceEvent {
  enum class Kind : std::uint8_t { kProgram, kRun, kCopy, kWaitOut, kWaitIn, kLive };
  Kind kind = Kind::kRun;
  std::uint8_t program = 0;   ///< graph::ProgramKind
  std::uint32_t source = 0;   ///< what attach() gave
  std::uint32_t index = 0;    ///< of the run, the copy; of the copies waited for, their number
  std::int64_t begin_ns = 0;  ///< since the trace was made
  std::int64_t end_ns = 0;
  Bytes live = 0;  ///< kLive: bytes of live buffers from now on
};

/// When every run, copy and wait began and ended, for a viewer of Chrome traces. Room for events is
/// taken at start; what comes when it is full is dropped and counted.
class Trace {
 public:
  enum Track : std::uint8_t { kCompute, kOut, kIn };
  static constexpr std::size_t kTracks = 3;

  explicit Trace(std::size_t events_per_track = std::size_t{1} << 18);

  /// Takes the names of a program over; the result goes into its events.
  std::uint32_t attach(const graph::Selected& selected, const plan::Program& program);
  /// A track is written by one thread at a time. Allocates nothing.
  void add(Track track, const TraceEvent& event);

  device::Clock::time_point start() const { return start_; }
  std::size_t size(Track track) const { return tracks_[track].count; }
  const TraceEvent& event(Track track, std::size_t i) const { return tracks_[track].events[i]; }
  std::size_t dropped() const;
  /// {"traceEvents": [...]}, times in microseconds.
  std::string json() const;
  void write(const std::filesystem::path& target) const;

 private:
  struct Events {
    std::vector<TraceEvent> events;
    std::size_t count = 0, dropped = 0;
  };
  /// What there is to say of one program's runs and copies, as JSON members.
  struct Names {
    std::vector<std::string> runs, outs, ins;
  };
  const std::string& name_of(Track track, const TraceEvent& event) const;

  device::Clock::time_point start_ = device::Clock::now();
  std::array<Events, kTracks> tracks_;
  std::vector<std::array<Names, graph::kProgramKinds>> sources_;
};

}  // namespace lantern::exec
