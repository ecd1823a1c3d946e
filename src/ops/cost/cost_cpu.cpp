#include <fmt/format.h>

#include <cmath>

#include "ops/blocks.hpp"
#include "ops/cost/cost.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& /*params*/, std::span<const TensorType> inputs) {
  const Shape& x = inputs[0].shape;
  LANTERN_ASSERT((inputs[1].shape == Shape{x.n(), x.c() * x.h() * x.w()}),
                 "the truth has a value for every value");
  return {inputs[0], {Shape{x.n(), 1}, DType::kF64}};
}

void gradient(GradientBuilder& builder, const Op& op) {
  if (!builder.wants(op.inputs[0])) return;
  builder.emit(kCostBackward, op.params, {op.outputs[0]}, {builder.target(op.inputs[0])});
}

struct Error {
  float value, delta;
};
Error error_of(CostKind kind, float x, float truth) {
  if (kind == CostKind::kMasked && truth == static_cast<float>(ref::kMaskedCost)) return {0, 0};
  const float e = truth - x;
  // A NaN goes through, so that the check for non-finite gradients sees it.
  if (kind == CostKind::kSmooth && std::abs(e) >= 1) {
    return {2 * std::abs(e) - 1, e > 0 ? 1.0F : -1.0F};
  }
  return {e * e, e};
}

}  // namespace

std::string CostParams::describe() const {
  const char* name = kind == CostKind::kSse      ? "sse"
                     : kind == CostKind::kMasked ? "masked"
                                                 : "smooth";
  return fmt::format("type={} scale={}", name, scale);
}

const graph::OpDef kCostLoss{.name = "cost", .infer = infer, .gradient = gradient};
const graph::OpDef kCostBackward{.name = "cost_backward"};

KernelChoice choose_cost_loss(const Op& op, const SelectContext& context) {
  const CostKind kind = op.params_as<CostParams>().kind;
  const Shape shape = context.shape(op.inputs[0]);
  const std::int64_t count = shape.c() * shape.h() * shape.w();
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {Layout{}, Layout{}},
          .images = shape.n(),
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            parallel_for(run.images, threads, [&](std::int64_t image) {
              const float* x = static_cast<const float*>(o[0]) + image * count;
              const float* truth = static_cast<const float*>(o[1]) + image * count;
              float* delta = static_cast<float*>(o[2]) + image * count;
              double sum = 0;
              for (std::int64_t i = 0; i < count; ++i) {
                const Error error = error_of(kind, x[i], truth[i]);
                delta[i] = error.delta;
                sum += error.value;
              }
              static_cast<double*>(o[3])[image] = sum;
            });
          })};
}

KernelChoice choose_cost_backward(const Op& op, const SelectContext& context) {
  const float scale = op.params_as<CostParams>().scale;
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[0]);
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = e.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* delta = static_cast<const float*>(o[0]);
            auto* dx = static_cast<float*>(o[1]);
            parallel_ranges(e.with_images(run.images).elements(), threads,
                            [&](std::int64_t begin, std::int64_t end) {
                              for (std::int64_t i = begin; i < end; ++i) {
                                dx[i] = accumulate ? dx[i] + scale * delta[i] : scale * delta[i];
                              }
                            });
          })};
}

}  // namespace lantern::ops
