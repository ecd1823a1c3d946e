#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/selected.hpp"
#include "plan/program.hpp"
#include "plan/segments.hpp"

namespace lantern::plan {

/// The part of a tensor that is kept, moved and made again as one: all of it, or a chunk's images.
struct Piece {
  std::uint32_t tensor = 0;
  std::int64_t first_image = 0;
  std::int64_t images = 0;  ///< 0: the whole tensor
  Bytes bytes = 0;
  bool fixed = false;  ///< persistent: always in its place
  bool scratch = false;
  std::vector<std::uint32_t> uses;     ///< steps that touch it, ascending
  std::vector<std::uint32_t> writers;  ///< steps that write it
  std::uint32_t complete = 0;          ///< the step that writes the last part of its first contents
  /// Its writers can run again: one op of the pass, nothing added up, nothing persistent written.
  bool can_recompute = false;
  double recompute_seconds = 0;  ///< of its own writers
  std::uint32_t gap_from = 0;    ///< the longest stretch between two uses: index of the first
};

struct StepOperand {
  std::uint32_t piece = 0;
  Bytes skip = 0;
  bool writes = false;
  bool needs = false;  ///< the piece must hold something already: it is read, or added to
};

/// An op on the images of one chunk.
struct Step {
  std::uint32_t op = 0;
  std::int64_t first_image = 0;
  std::int64_t images = 0;  ///< 0: whole
  std::uint32_t segment = 0;
  double seconds = 0;
  std::uint32_t first_operand = 0, operand_count = 0;
};

/// One program of a network cut into chunks: what there is to schedule, before any choice of what
/// to evict.
struct Problem {
  const graph::Selected* selected = nullptr;
  std::vector<Segment> segments;
  std::vector<Step> steps;
  std::vector<StepOperand> operands;
  std::vector<Piece> pieces;

  std::span<const StepOperand> operands_of(const Step& step) const {
    return std::span(operands).subspan(step.first_operand, step.operand_count);
  }
  std::span<const graph::AliasHint> hints_of(const Step& step) const {
    return selected->ops[step.op].may_alias;
  }
};

/// Cuts the ops of a program: `chunks[s]` parts for segment s (a power of two, at most what the
/// segment allows; the tensors between two segments are cut as the coarser of them). `op_seconds`
/// is the fixed cost of a run.
Problem make_problem(const graph::Selected& selected, std::span<const std::uint32_t> ops,
                     const std::vector<Segment>& segments, const std::vector<int>& chunks,
                     double op_seconds);

}  // namespace lantern::plan
