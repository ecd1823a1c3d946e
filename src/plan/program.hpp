#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "graph/selected.hpp"

namespace lantern::plan {

/// Every buffer starts on a border that no kernel variant tells apart.
inline constexpr Bytes kAlignment = 256;
/// Buffers that are copied to or from a file start and end at multiples of this, for direct I/O.
inline constexpr Bytes kFileAlignment = 4096;

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// One stay of a tensor, or of some of its images, in the arena. A tensor that is evicted and comes
/// back, or is made a second time, has a buffer for each stay.
struct Buffer {
  std::uint32_t tensor = 0;
  std::int64_t first_image = 0;
  std::int64_t images = 0;  ///< 0: the whole tensor
  Bytes offset = 0;
  Bytes bytes = 0;
  /// The buffer whose bytes it takes over (in place) from the run on that makes it, else itself. A
  /// row of buffers in one place has one kAlloc and one kFree, those of its first.
  std::uint32_t alias_of = kNone;
};

/// Where evicted bytes wait.
enum class Tier : std::uint8_t { kHost, kFile };

/// Room in the host pool or in the file.
struct Slot {
  Tier tier = Tier::kHost;
  Bytes offset = 0;
  Bytes bytes = 0;
};

/// One step of a program. The compute stream walks the list; copies run beside it, those of a
/// direction one after the other in the order of the list.
struct Instruction {
  enum class Kind : std::uint8_t {
    kAlloc,    ///< `index` is a buffer whose bytes come to life; for the checker and for people
    kFree,     ///< `index` is a buffer whose bytes end; no copy of it may be under way
    kRun,      ///< `index` is a run
    kOut,      ///< starts copy `index` of `outs`; its buffer stays unchanged until it is waited for
    kIn,       ///< starts copy `index` of `ins`; its buffer is not touched until it is waited for
    kWaitOut,  ///< waits until the first `index` copies of `outs` are done
    kWaitIn,   ///< waits until the first `index` copies of `ins` are done
  };
  Kind kind = Kind::kRun;
  std::uint32_t index = 0;
};

/// An op on a range of images.
struct Run {
  std::uint32_t op = 0;
  std::int64_t first_image = 0;
  std::int64_t images = 0;          ///< 0: the op runs whole
  std::uint32_t first_operand = 0;  ///< in `operands`: the op's reads, then its writes
  bool again = false;               ///< a recomputation of what ran before
};

/// An operand starts `skip` bytes behind the start of its buffer (a run on some of its images).
struct Operand {
  std::uint32_t buffer = 0;
  Bytes skip = 0;
};

struct Copy {
  std::uint32_t buffer = 0;
  std::uint32_t slot = 0;
};

/// What one program does.
struct InstructionList {
  std::vector<Instruction> instructions;
  std::vector<Run> runs;
  std::vector<Operand> operands;
  std::vector<Copy> outs, ins;
};

/// What the planner expects of one run of the mini-batch program; seconds.
struct Prediction {
  double seconds = 0;
  double seconds_unlimited = 0;  ///< everything kept, nothing copied
  double bound = 0;              ///< no plan within the budget can be faster, by the cost model
  double recompute_seconds = 0;
  Bytes bytes_out = 0, bytes_in = 0;
  Bytes saved_bytes = 0;  ///< kept from forward for backward, all images
  int chunks = 1;         ///< most chunks of any op
  int evaluations = 0;    ///< plans looked at
};

/// The whole of what will happen: the ordered instructions of every program and a fixed place for
/// every byte. Persistent tensors keep their place through all programs; transients of different
/// programs may share bytes.
struct Program {
  std::array<InstructionList, graph::kProgramKinds> programs;
  std::vector<Buffer> buffers;
  std::vector<Slot> slots;
  /// By tensor: its only buffer when it is persistent, else kNone.
  std::vector<std::uint32_t> persistent;
  Bytes arena_bytes = 0;
  Bytes persistent_bytes = 0;  ///< they lie at the start of the arena
  Bytes live_peak_bytes =
      0;  ///< largest sum of live buffers; arena_bytes minus it is what placement wastes
  Bytes host_bytes = 0, file_bytes = 0;  ///< sizes of the other tiers
  Prediction prediction;

  const InstructionList& of(graph::ProgramKind kind) const {
    return programs[static_cast<std::size_t>(kind)];
  }
  InstructionList& of(graph::ProgramKind kind) { return programs[static_cast<std::size_t>(kind)]; }
  /// Text form of the `program` stage: one instruction a line with offsets and live bytes.
  std::string dump(const graph::Selected& selected) const;
};

}  // namespace lantern::plan
