#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/selected.hpp"

namespace lantern::plan {

/// Every placed tensor starts on a cache line, and on a border that no kernel variant tells apart.
inline constexpr Bytes kAlignment = 256;

/// One step of a program. `index` is an op (kRun) or a tensor (kAlloc, kFree).
struct Instruction {
  enum class Kind : std::uint8_t {
    kAlloc,  ///< the tensor's bytes come to life: for the checker and for people, the executor
             ///< skips it
    kRun,
    kFree,
  };
  Kind kind = Kind::kRun;
  std::uint32_t index = 0;
};

/// Where a tensor lies in the arena. Tensors of one alias class share an offset.
struct Placement {
  Bytes offset = -1;  ///< -1: not placed (never used)
  Bytes bytes = 0;
};

/// The whole of what will happen: the ordered instructions of every program and a fixed place for
/// every tensor. Persistent tensors keep their place through all programs; transients of different
/// programs may share bytes.
struct Program {
  std::array<std::vector<Instruction>, graph::kProgramKinds> programs;
  std::vector<Placement> placements;  ///< parallel to Selected::tensors
  /// For a tensor that takes over another one's bytes (in place): that tensor, else itself.
  std::vector<std::uint32_t> alias_of;
  Bytes arena_bytes = 0;
  Bytes persistent_bytes = 0;
  Bytes live_peak_bytes =
      0;  ///< largest sum of live tensors; arena_bytes minus it is what placement wastes

  const std::vector<Instruction>& of(graph::ProgramKind kind) const {
    return programs[static_cast<std::size_t>(kind)];
  }
  /// Text form of the `program` stage: one instruction a line with offsets and live bytes.
  std::string dump(const graph::Selected& selected) const;
};

}  // namespace lantern::plan
