#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/device_spec.hpp"
#include "plan/program.hpp"

namespace lantern::plan {

/// Where the persistent tensors of a network lie whose size does not depend on that of its images:
/// the programs of all sizes can share them.
struct Places {
  std::map<std::string, Bytes> offsets;  ///< by the name of the tensor
  Bytes end = 0;                         ///< everything else lies behind it
};

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
  std::shared_ptr<const Places> places{};  ///< given by another program; null: this one chooses
  int chunks = 0;  ///< > 0: every op that can runs in so many chunks (tests)
};

/// Turns the selected ops into a program with a place for every byte (memory.md, section 3): what
/// fits is kept, the rest is copied out and in again or computed a second time, in chunks of images
/// where single tensors are too large. Pure: equal arguments give equal programs. Throws kResource
/// with the smallest sufficient budget when the budget is below it.
Program make_program(const graph::Selected& selected, const PlanOptions& options = {});

/// Places of a program's parameters, states and their gradients.
Places places_of(const graph::Selected& selected, const Program& program);

/// The smallest `memory` with which make_program succeeds.
Bytes smallest_memory(const graph::Selected& selected, const PlanOptions& options);

}  // namespace lantern::plan
