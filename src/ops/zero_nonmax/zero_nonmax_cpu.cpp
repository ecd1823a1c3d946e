#include <fmt/format.h>

#include "core/error.hpp"
#include "ops/blocks.hpp"
#include "ops/parallel.hpp"
#include "ops/zero_nonmax/zero_nonmax.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& /*params*/, std::span<const TensorType> inputs) {
  LANTERN_ASSERT(inputs[0].shape == inputs[1].shape, "the pooling keeps the size of the map");
  return {inputs[0]};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kZeroNonmaxBackward, op.params, {*dy, op.inputs[2]}, {builder.target(op.inputs[0])});
}

}  // namespace

std::string ZeroNonmaxParams::describe() const { return fmt::format("own_index={}", own_index); }

const graph::OpDef kZeroNonmax{.name = "zero_nonmax", .infer = infer, .gradient = gradient};
const graph::OpDef kZeroNonmaxBackward{.name = "zero_nonmax_backward"};

KernelChoice choose_zero_nonmax(const Op& op, const SelectContext& context) {
  const Layout layout = context.data_layout(op.inputs[0]);
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  const int threads = context.threads;
  const std::size_t dst = op.inputs.size();
  return {.name = "cpu",
          .inputs = std::vector<Layout>(op.inputs.size(), layout),
          .outputs = {layout},
          .images = e.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* y = static_cast<const float*>(o[0]);
            const auto* x = static_cast<const float*>(o[1]);
            auto* out = static_cast<float*>(o[dst]);
            parallel_ranges(e.with_images(run.images).elements(), threads,
                            [&](std::int64_t begin, std::int64_t end) {
                              for (std::int64_t i = begin; i < end; ++i)
                                out[i] = y[i] == x[i] ? y[i] : 0.0F;
                            });
          })};
}

KernelChoice choose_zero_nonmax_backward(const Op& op, const SelectContext& context) {
  // The index was written in the layout of the pooling's output; the gradient follows it.
  const Layout layout = context.data_layout(op.inputs[1]);
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  const bool wide = context.graph.type(op.inputs[1]).dtype == DType::kI32;
  const auto own = static_cast<std::int32_t>(op.params_as<ZeroNonmaxParams>().own_index);
  const bool accumulate = op.accumulates[0];
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout, layout},
          .outputs = {layout},
          .images = e.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* d = static_cast<const float*>(o[0]);
            auto* dy = static_cast<float*>(o[2]);
            const auto pass = [&](const auto* index) {
              parallel_ranges(e.with_images(run.images).elements(), threads,
                              [&](std::int64_t begin, std::int64_t end) {
                                for (std::int64_t i = begin; i < end; ++i) {
                                  const float kept =
                                      static_cast<std::int32_t>(index[i]) == own ? d[i] : 0.0F;
                                  dy[i] = accumulate ? dy[i] + kept : kept;
                                }
                              });
            };
            if (wide) {
              pass(static_cast<const std::int32_t*>(o[1]));
            } else {
              pass(static_cast<const std::uint8_t*>(o[1]));
            }
          })};
}

}  // namespace lantern::ops
