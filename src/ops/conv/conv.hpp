#pragma once

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/conv/conv_geometry.hpp"
#include "ops/conv/epilogue.hpp"

namespace lantern::ops {

struct ConvParams final : graph::OpParams {
  ConvParams(const ConvGeometry& g, bool bias, std::int64_t first = 0, Epilogue e = {},
             bool rounds = false)
      : geometry(g), has_bias(bias), source_first(first), epilogue(e), may_round(rounds) {}
  ConvGeometry geometry;
  bool has_bias = false;
  /// Where the source has more channels than `geometry.ic`: the first of those that are read, a
  /// multiple of 16, as is geometry.ic. Such a convolution runs one image at a time.
  std::int64_t source_first = 0;
  Epilogue epilogue;  ///< of inference programs: no gradient passes through one
  /// Faster ways than the sum itself may be taken, which round in another order (winograd.hpp).
  bool may_round = false;
  std::string describe() const override;
};

/// Parameters of the backward ops; `weights` names the forward weights, whose layout the gradient
/// takes over.
struct ConvGradientParams final : graph::OpParams {
  ConvGradientParams(const ConvGeometry& g, graph::TensorId w, std::int64_t first = 0)
      : geometry(g), weights(w), source_first(first) {}
  ConvGeometry geometry;
  graph::TensorId weights;
  std::int64_t source_first = 0;  ///< as in ConvParams, for the gradient of the weights
  std::string describe() const override;
};

/// dst = epilogue(conv(src, weights[, bias])[, residual]).  src [N,IC,H,W] or a slice of more
/// channels, weights [OC,IC/groups,KH,KW], bias [OC] -> dst [N,OC,OH,OW].
extern const graph::OpDef kConvForward;
/// diff_src (+)= transposed conv(diff_dst, weights). Exact per image for any call size.
extern const graph::OpDef kConvBackwardData;
/// diff_weights += correlation(src, diff_dst), summed over image groups in image order.
extern const graph::OpDef kConvBackwardWeights;
/// diff_bias += sum of diff_dst over images and positions (partial sums in double).
extern const graph::OpDef kBiasGradient;

/// Images per call of a sum over the batch (memory.md section 4, item 6): a function of the layer
/// alone, so that no plan can change the order of summation.
std::int64_t image_group(const ConvGeometry& geometry);

}  // namespace lantern::ops
