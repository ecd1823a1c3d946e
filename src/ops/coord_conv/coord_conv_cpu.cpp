#include <algorithm>
#include <cmath>

#include "ops/blocks.hpp"
#include "ops/coord_conv/coord_conv.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& /*params*/, std::span<const TensorType> inputs) {
  return {inputs[0]};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kCoordConvBackward, op.params, {*dy}, {builder.target(op.inputs[0])});
}

// Both directions: dst (+)= src, with value(channel, cell) in place of the coordinate channels.
template <typename Value>
void pass(const BlockedExtents& e, std::int64_t job, const float* src, float* dst, bool accumulate,
          const Value& value) {
  const std::int64_t first = job % e.blocks * e.block;  // channel of lane 0
  const std::int64_t replaced =
      std::clamp<std::int64_t>(std::min(kCoordinateChannels, e.c) - first, 0, e.block);
  for (std::int64_t s = 0; s < e.spatial; ++s) {
    for (std::int64_t lane = 0; lane < e.block; ++lane) {
      const std::int64_t at = job * e.plane() + s * e.block + lane;
      const float in = lane < replaced ? value(first + lane, s) : src[at];
      dst[at] = accumulate ? dst[at] + in : in;
    }
  }
}

}  // namespace

float coordinate(std::int64_t channel, std::int64_t y, std::int64_t x, const Shape& shape) {
  const float across = 2 * static_cast<float>(x) / static_cast<float>(shape.w()) - 1;
  const float down = 2 * static_cast<float>(y) / static_cast<float>(shape.h()) - 1;
  return channel == 0 ? across : channel == 1 ? down : std::sqrt(across * across + down * down);
}

const graph::OpDef kCoordConvForward{.name = "coord_conv", .infer = infer, .gradient = gradient};
const graph::OpDef kCoordConvBackward{.name = "coord_conv_backward"};

KernelChoice choose_coord_conv_forward(const Op& op, const SelectContext& context) {
  const Layout layout = context.data_layout(op.inputs[0]);
  const Shape shape = context.shape(op.inputs[0]);
  const BlockedExtents e(shape, layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .may_alias = {{0, 0}},
          .images = e.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            parallel_for(run.images * e.blocks, threads, [&](std::int64_t job) {
              pass(e, job, static_cast<const float*>(o[0]), static_cast<float*>(o[1]), false,
                   [&](std::int64_t channel, std::int64_t s) {
                     return coordinate(channel, s / shape.w(), s % shape.w(), shape);
                   });
            });
          })};
}

KernelChoice choose_coord_conv_backward(const Op& op, const SelectContext& context) {
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[0]);
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  const int threads = context.threads;
  KernelChoice choice{.name = "cpu", .inputs = {layout}, .outputs = {layout}, .images = e.n};
  if (!accumulate) choice.may_alias.push_back({0, 0});
  choice.kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
    parallel_for(run.images * e.blocks, threads, [&](std::int64_t job) {
      pass(e, job, static_cast<const float*>(o[0]), static_cast<float*>(o[1]), accumulate,
           [](std::int64_t, std::int64_t) { return 0.0F; });
    });
  });
  return choice;
}

}  // namespace lantern::ops
