#include <fmt/format.h>

#include <cstring>

#include "core/error.hpp"
#include "ops/broadcast/broadcast.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& params, std::span<const TensorType> inputs) {
  const Shape& shape = static_cast<const BroadcastParams&>(params).shape;
  LANTERN_ASSERT(inputs[0].shape.elements() * shape.n() == shape.elements(),
                 "an image holds as many values as the parameter");
  return {{shape, DType::kF32}};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kBroadcastBackward, op.params, {*dy}, {builder.target(op.inputs[0])});
}

}  // namespace

std::string BroadcastParams::describe() const { return fmt::format("shape={}", shape.to_string()); }

const graph::OpDef kBroadcast{.name = "broadcast", .infer = infer, .gradient = gradient};
const graph::OpDef kBroadcastBackward{.name = "broadcast_backward"};

KernelChoice choose_broadcast(const Op& op, const SelectContext& context) {
  const std::int64_t images = context.shape(op.outputs[0]).n();
  const std::int64_t count = context.shape(op.inputs[0]).elements();
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}},
          .outputs = {Layout{}},
          .images = images,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            parallel_for(run.images, threads, [&](std::int64_t image) {
              std::memcpy(static_cast<float*>(o[1]) + image * count, o[0],
                          static_cast<std::size_t>(count) * sizeof(float));
            });
          })};
}

KernelChoice choose_broadcast_backward(const Op& op, const SelectContext& context) {
  const std::int64_t images = context.shape(op.inputs[0]).n();
  const std::int64_t count = context.shape(op.outputs[0]).elements();
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}},
          .outputs = {Layout{}},
          .scratch = {count * static_cast<Bytes>(sizeof(double))},
          .images = images,
          .carries = true,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* dy = static_cast<const float*>(o[0]);
            auto* dx = static_cast<float*>(o[1]);
            auto* totals = static_cast<double*>(o[2]);
            parallel_ranges(count, threads, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                double total = run.first_image > 0 ? totals[i] : 0;
                for (std::int64_t image = 0; image < run.images; ++image) {
                  total += static_cast<double>(dy[image * count + i]);
                }
                totals[i] = total;
                if (!run.is_last()) continue;
                dx[i] = (run.subdivision == 0 ? 0.0F : dx[i]) + static_cast<float>(total);
              }
            });
          })};
}

}  // namespace lantern::ops
