#pragma once

#include <variant>
#include <vector>

#include "graph/autodiff.hpp"
#include "graph/graph.hpp"
#include "ops/batch_norm/batch_norm.hpp"
#include "ops/kernel.hpp"
#include "ops/upsample/upsample.hpp"

namespace lantern::ops {

/// A run of channels of a source.
struct ChannelSlice {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// One part of a concatenation: channels of a map as they are, or what a batch normalisation or an
/// enlargement writes straight into its place, so that the map by itself never exists. Such a place
/// begins at a multiple of kSliceAlignment.
struct ConcatPart {
  using Source = std::variant<ChannelSlice, BatchNormParams, UpsampleParams>;
  Source source;
  std::int64_t channels = 0;

  ConcatPart(ChannelSlice slice) : source(slice), channels(slice.count) {}
  ConcatPart(BatchNormParams norm, std::int64_t c) : source(std::move(norm)), channels(c) {}
  ConcatPart(UpsampleParams upsample, std::int64_t c) : source(std::move(upsample)), channels(c) {}
  /// Inputs of the op that belong to this part: a map, for a batch norm also mean, variance, gamma
  /// and beta.
  std::size_t inputs() const { return std::holds_alternative<BatchNormParams>(source) ? 5 : 1; }
};

/// Slices that kernels read or write in place begin and end with a channel block of any CPU.
inline constexpr std::int64_t kSliceAlignment = 16;

struct ConcatParams final : graph::OpParams {
  explicit ConcatParams(std::vector<ConcatPart> p) : parts(std::move(p)) {}
  explicit ConcatParams(const std::vector<ChannelSlice>& slices)
      : parts(slices.begin(), slices.end()) {}
  std::vector<ConcatPart> parts;
  std::string describe() const override;
};

/// dst = the parts one behind the other along channels; all have equal N, H, W. Inputs: those of
/// the first part, those of the second, ...
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
