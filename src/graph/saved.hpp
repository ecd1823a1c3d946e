#pragma once

#include "graph/graph.hpp"

namespace lantern::graph {

/// Bytes that the forward half of the mini-batch program makes and its backward half reads, were
/// nothing made a second time: plain values, without the padding of a device's layouts. 0 for a
/// graph without that program.
Bytes saved_bytes(const Graph& graph);

}  // namespace lantern::graph
