#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "plan/timeline.hpp"

namespace lantern::plan {

/// What bytes of the arena are there for.
enum class Use : std::uint8_t {
  kParameters,          ///< weights, momentum and rolling statistics
  kParameterGradients,  ///< their gradients
  kImages,              ///< pictures, truth and losses
  kSaved,               ///< made by forward, read by backward
  kPassing,             ///< made by forward, and read by it only
  kRecomputed,          ///< made again for backward
  kPrefetched,          ///< on their way back in, not yet used
  kGradients,           ///< of activations
  kScratch,             ///< of one op
};
inline constexpr int kUses = 9;
std::string_view to_string(Use use);

/// Live bytes by what they are for.
using Holding = std::array<Bytes, kUses>;
Bytes sum(const Holding& holding);

/// The state of all tiers from `seconds` on, until the next moment.
struct Moment {
  double seconds = 0;
  Holding device{};
  Bytes host = 0, file = 0;  ///< in slots, from the start of the copy out to the last copy in
};

/// The memory of one run of a program: a moment for every change, ascending in time.
std::vector<Moment> memory_over_time(const graph::Selected& selected, const Program& program,
                                     graph::ProgramKind kind, const Timeline& timeline);

/// What is held when a run starts at which most is alive.
struct Peak {
  Holding holding{};
  std::uint32_t op = kNone;  ///< index into Selected::ops
  graph::ProgramKind program = graph::ProgramKind::kMiniBatch;
};
/// Over all programs.
Peak find_peak(const graph::Selected& selected, const Program& program);

/// Seconds of the mini-batch program before and from the first op that makes a gradient, were
/// nothing recomputed or copied.
struct PassSeconds {
  double forward = 0, backward = 0;
};
PassSeconds pass_seconds(const graph::Selected& selected, double start_seconds);

/// What makes a plan slower than one without limits, in plain words; `host_memory` is the
/// size of the host tier that was planned for.
std::string limited_by(const Program& program, const Timeline& timeline, Bytes host_memory);

}  // namespace lantern::plan
