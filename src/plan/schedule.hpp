#pragma once

#include <cstdint>
#include <vector>

#include "plan/planner.hpp"
#include "plan/problem.hpp"

namespace lantern::plan {

/// What becomes of a piece between its uses.
enum class Choice : std::uint8_t {
  kKeep,
  kOffload,          ///< copied out, and in again after its longest gap
  kRecompute,        ///< dropped, made again after its longest gap, then kept to its last use
  kOffloadAlways,    ///< evicted in every gap that is not short
  kRecomputeAlways,  ///< dropped after every use that is not followed by another soon
};

/// A row of bytes in the arena: from the entry that makes or fetches it to the one that ends it.
struct Block {
  Bytes bytes = 0;
  std::int32_t begin = 0, end = 0;  ///< entries, both included; copies may widen them
  bool file = false;                ///< is copied to or from a file: aligned for direct I/O
};

/// One stay of a piece; several follow one another in a block where ops work in place.
struct Stay {
  std::uint32_t piece = 0;
  std::uint32_t block = 0;
  std::uint32_t alias_of = kNone;  ///< the stay whose bytes it takes over
  std::int32_t begin = 0, end = 0;
  std::int32_t written = -1;  ///< last entry that writes it
  std::int32_t out = -1;      ///< index of its copy out
  std::int32_t in = -1;       ///< index of its copy in
};

/// One run of the schedule, with the stays of its operands.
struct Entry {
  std::uint32_t step = 0;
  bool again = false;
  std::uint32_t first_stay = 0;  ///< in Schedule::stay_of, parallel to the step's operands
};

struct CopyOut {
  std::uint32_t stay = 0;
  std::uint32_t slot = 0;  ///< index of a piece's slot in `slots`
  std::int32_t after = 0;  ///< issued behind this entry
  std::int32_t freed = 0;  ///< waited for, and its block freed, before this entry
  double done = 0;
};
struct CopyIn {
  std::uint32_t stay = 0;
  std::uint32_t slot = 0;
  std::int32_t needed = 0;  ///< waited for before this entry
  std::int32_t issue = 0;   ///< issued before this entry
};
/// Room outside the arena for a piece, from the copy out to the last copy in.
struct SlotLife {
  Tier tier = Tier::kHost;
  Bytes bytes = 0;
  std::int32_t begin = 0, end = 0;
};

/// A whole way of running a problem, and what it costs.
struct Schedule {
  std::vector<Entry> entries;
  std::vector<std::uint32_t> stay_of;
  std::vector<Stay> stays;
  std::vector<Block> blocks;
  std::vector<CopyOut> outs;
  std::vector<CopyIn> ins;
  std::vector<SlotLife> slots;

  bool possible = true;  ///< false: something is needed that cannot be had any more
  double seconds = 0;
  double recompute_seconds = 0;
  Bytes peak = 0;  ///< live bytes that no timing of copies can avoid
  std::int32_t peak_entry = 0;
  Bytes overflow = 0;       ///< how far the peak is above the memory
  Bytes tier_overflow = 0;  ///< how far the slots are above what the tiers hold
  Bytes bytes_out = 0, bytes_in = 0;
};

/// What a schedule may use.
struct Limits {
  Bytes memory = PlanOptions::kUnlimited;  ///< for transients
  Bytes host_memory = 0, disk_memory = 0;
  LinkSpec host, disk;
  double contention = 1;
  bool keep_everything = false;  ///< nothing ends before the program does
};

/// Gaps of at most so many steps are too short to evict anything for.
inline constexpr std::uint32_t kShortGap = 12;

/// Turns a choice for every piece into a schedule (memory.md 3.3): evictions after the last use
/// before a gap, recomputation before the first use after it, copies out as early as possible,
/// copies in as early as the memory has room for them up to their use.
class Scheduler {
 public:
  Scheduler(const Problem& problem, const Limits& limits);

  void set_memory(Bytes memory) { limits_.memory = memory; }
  const Limits& limits() const { return limits_; }
  const Problem& problem() const { return problem_; }

  const Schedule& last() const { return schedule_; }
  /// Valid until the next call.
  const Schedule& run(const std::vector<Choice>& choices);

 private:
  /// With what the walk asks of a Piece at every operand, which would be a cache miss otherwise.
  struct PieceState {
    std::int32_t stay = -1;                   ///< while it is in the arena
    std::int32_t slot = -1;                   ///< a copy outside that is as new as the piece
    const std::uint32_t* next_use = nullptr;  ///< the first in Piece::uses that is still to come
    const std::uint32_t* uses_end = nullptr;
    std::uint32_t pins = 0;      ///< entries under construction that need it
    std::uint32_t complete = 0;  ///< as in Piece
    bool fixed = false;          ///< as in Piece
    bool rebuilding = false;

    bool used_up() const { return next_use == uses_end; }
  };

  // The walk over the steps (schedule.cpp).
  bool run_step(std::uint32_t step, bool again);
  void fetch(std::uint32_t piece);
  bool recompute(std::uint32_t piece);
  void add_entry(std::uint32_t step, bool again);
  bool leaves(std::uint32_t piece, bool again);
  bool is_longest_gap(std::uint32_t piece) const;
  void evict(std::uint32_t piece);
  void work_in_place(const Step& step, std::uint32_t first_stay);
  std::int32_t new_stay(std::uint32_t piece);
  Tier tier_of(std::uint32_t piece) const;
  void choose_tiers();
  void place_in_blocks();

  const Problem& problem_;
  Limits limits_;
  const std::vector<Choice>* choices_ = nullptr;
  std::uint32_t step_ = 0;  ///< the step of the first pass that the walk is at
  int depth_ = 0;
  std::vector<PieceState> fresh_states_;  ///< before the first step
  std::vector<PieceState> states_;
  std::vector<Tier> tiers_;  ///< by piece, when there are two
  Schedule schedule_;
};

/// Lets time pass over the entries: when copies start and end, what waits for what, and how long
/// bytes stay (simulate.cpp). Widens blocks by the time that copies need them.
void simulate(const Problem& problem, const Limits& limits, Schedule& schedule);

}  // namespace lantern::plan
