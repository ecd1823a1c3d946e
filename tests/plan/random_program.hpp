#pragma once

#include "core/rng.hpp"
#include "graph/selected.hpp"

namespace lantern::plan::test {

/// Builds the planner's input by hand: tensors by name, ops that read and write them.
class SelectedBuilder {
 public:
  /// `images` > 0: the bytes divide into so many.
  std::uint32_t tensor(const std::string& name, graph::Role role, Bytes bytes,
                       std::int64_t images = 0);
  /// Appends an op; `hints` are pairs of an index into writes and one into reads.
  graph::SelectedOp& op(graph::ProgramKind program, std::vector<std::uint32_t> reads,
                        std::vector<std::uint32_t> writes, std::vector<graph::AliasHint> hints = {},
                        std::vector<bool> accumulates = {});
  graph::Selected build() const { return selected_; }

 private:
  graph::Selected selected_;
};

/// Bytes of an image, and of a tensor that is not divided, are multiples of this, so that a test
/// may interpret memory in cells.
inline constexpr Bytes kCell = 64;

/// Parameters; a mini-batch program of up to nine images with per-image ops, ops that run whole,
/// sums with and without carried scratch, second contributions, in-place hints and image groups; a
/// check, an update and a forward program. `images` and `maps` (per-image ops of forward) say how
/// large it is; 0: as the dice fall.
graph::Selected random_program(Rng& rng, std::int64_t images = 0, std::int64_t maps = 0);

}  // namespace lantern::plan::test
