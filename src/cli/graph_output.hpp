#pragma once

#include <string>

#include "layers/lower.hpp"
#include "layers/network.hpp"

namespace lantern::cli {

/// The ops and tensors of a graph; docs/cli.md has the form.
std::string graph_json(const layers::Network& network, const graph::Graph& graph);
/// Ops as nodes and the data between them as edges, for graphviz.
std::string graph_dot(const layers::Network& network, const graph::Graph& graph);
/// The same drawn.
std::string graph_svg(const layers::Network& network, const graph::Graph& graph);

}  // namespace lantern::cli
