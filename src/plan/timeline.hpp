#pragma once

#include <cstdint>
#include <vector>

#include "core/device_spec.hpp"
#include "plan/program.hpp"

namespace lantern::plan {

/// When something begins and ends, in seconds from the start of the program.
struct Stretch {
  double start = 0, end = 0;
  double length() const { return end - start; }
};

/// A program replayed on the clock: one run of it on the machine that the costs are of.
struct Timeline {
  std::vector<double> reached;           ///< by instruction: when the compute stream has passed it
  std::vector<Stretch> runs, outs, ins;  ///< parallel to the lists of the program
  double seconds = 0;
  double waiting = 0;      ///< the compute stream stands still for copies
  double slowed = 0;       ///< runs take so much longer because copies run beside them
  double recomputing = 0;  ///< runs marked `again`, undisturbed
};

/// Replays the instructions one after the other: runs take SelectedOp::seconds of their images and
/// device.op_seconds to start; copies of a direction follow one another, each over the link of its
/// slot's tier; a run that starts while a copy is under way takes device.contention times as long.
/// Knows nothing of how the program was planned.
Timeline replay(const graph::Selected& selected, const Program& program, graph::ProgramKind kind,
                const DeviceSpec& device);

}  // namespace lantern::plan
