#pragma once

#include "core/device_spec.hpp"
#include "plan/program.hpp"

namespace lantern::plan {

struct PlanOptions {
  static constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

  /// Every tensor keeps bytes of its own to the end of its program, so that tests can read all of
  /// them afterwards.
  bool keep_everything = false;
  Bytes memory = kUnlimited;  ///< the arena may not be larger
  Bytes host_memory = 0;      ///< of the host tier behind `host`; 0: none
  Bytes disk_memory = 0;      ///< of the file tier behind `disk`; 0: none
  LinkSpec host, disk;
  double contention = 1;    ///< factor on compute time while a copy runs
  double op_seconds = 0;    ///< fixed cost of a run, paid again for every chunk
  int evaluations = 30000;  ///< most plans the local search looks at
  std::uint64_t seed = 1;
  int chunks = 0;  ///< > 0: every op that can runs in so many chunks (tests)
};

/// Turns the selected ops into a program with a place for every byte (memory.md, section 3): what
/// fits is kept, the rest is copied out and in again or computed a second time, in chunks of images
/// where single tensors are too large. Pure: equal arguments give equal programs. Throws kResource
/// with the smallest sufficient budget when the budget is below it.
Program make_program(const graph::Selected& selected, const PlanOptions& options = {});

/// The smallest `memory` with which make_program succeeds.
Bytes smallest_memory(const graph::Selected& selected, const PlanOptions& options);

}  // namespace lantern::plan
