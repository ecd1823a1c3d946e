#pragma once

#include "core/rng.hpp"
#include "graph/selected.hpp"

namespace lantern::plan::test {

/// Builds the planner's input by hand: tensors by name, ops that read and write them.
class SelectedBuilder {
 public:
  std::uint32_t tensor(const std::string& name, graph::Role role, Bytes bytes);
  /// Appends an op; `hints` are pairs of an index into writes and one into reads.
  void op(graph::ProgramKind program, std::vector<std::uint32_t> reads,
          std::vector<std::uint32_t> writes, std::vector<graph::AliasHint> hints = {},
          std::vector<bool> accumulates = {});
  graph::Selected build() const { return selected_; }

 private:
  graph::Selected selected_;
};

/// Parameters, a mini-batch program (chains, branches, accumulated gradients, scratch), an update
/// and a forward program.
graph::Selected random_program(Rng& rng);

}  // namespace lantern::plan::test
