#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"
#include "ops/local/local_ref.hpp"

namespace lantern::ops {

using ref::LocalGeometry;

struct LocalParams final : graph::OpParams {
  explicit LocalParams(const LocalGeometry& g) : geometry(g) {}
  LocalGeometry geometry;
  std::string describe() const override;
};

/// dst = untied convolution of src (+ bias), see LocalGeometry. Inputs src [N,C,H,W], weights
/// [locations * filters, C*size*size], bias [filters*OH*OW].
extern const graph::OpDef kLocalForward;
/// diff_src (+)= its transpose. Inputs diff_dst, weights.
extern const graph::OpDef kLocalBackwardData;
/// diff_weights = diff_dst times what the taps read, summed image by image in double; adds to what
/// earlier mini-batches of the iteration left. Inputs diff_dst, src.
extern const graph::OpDef kLocalBackwardWeights;

KernelChoice choose_local_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_local_backward_data(const graph::Op& op, const SelectContext& context);
KernelChoice choose_local_backward_weights(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
