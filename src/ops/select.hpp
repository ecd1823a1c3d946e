#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/selected.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

/// The physical program: plain numbers for the planner, and beside them the kernels and layouts
/// that run it.
struct Selection {
  graph::Selected selected;
  std::vector<std::unique_ptr<Kernel>> kernels;  ///< parallel to selected.ops
  std::vector<Layout> layouts;                   ///< parallel to selected.tensors
};

/// Layouts by the name of the tensor.
using NamedLayouts = std::map<std::string, Layout>;

struct SelectOptions {
  int threads = 1;
  int block = preferred_block();
  /// Tensors that lie so already, because another program shares them; kernels adapt. Null: none.
  std::shared_ptr<const NamedLayouts> fixed{};
};

/// Chooses for every op its kernel, for every tensor its layout; where a reader wants another
/// layout than the tensor has, a reorder op is inserted. Pure: equal graphs and options give equal
/// selections.
Selection select(const graph::Graph& graph, const SelectOptions& options);

/// Ends the kernels that no selection uses any more; oneDNN keeps their code for the next one that
/// asks.
void forget_unused_kernels();

}  // namespace lantern::ops
