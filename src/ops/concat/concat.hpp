#pragma once

#include <vector>

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::ops {

/// A run of channels of a source.
struct ChannelSlice {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

struct ConcatParams final : graph::OpParams {
  explicit ConcatParams(std::vector<ChannelSlice> s) : slices(std::move(s)) {}
  std::vector<ChannelSlice> slices;  ///< one an input
  std::string describe() const override;
};

/// dst = the slices of the inputs one behind the other along channels; all inputs have equal N, H,
/// W.
extern const graph::OpDef kConcatForward;

struct ConcatGradientParams final : graph::OpParams {
  ConcatGradientParams(ChannelSlice s, std::int64_t offset) : slice(s), dst_first(offset) {}
  ChannelSlice slice;          ///< channels of the source
  std::int64_t dst_first = 0;  ///< where they stand in the concatenation
  std::string describe() const override;
};
/// diff_src[slice] (+)= diff_dst[dst_first ...]; the other channels of diff_src get zero when it is
/// written first.
extern const graph::OpDef kConcatBackward;

KernelChoice choose_concat_forward(const graph::Op& op, const SelectContext& context);
KernelChoice choose_concat_backward(const graph::Op& op, const SelectContext& context);

}  // namespace lantern::ops
