#include "ops/softmax/softmax.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/parallel.hpp"
#include "ops/softmax/softmax_ref.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::int64_t values_per_image(const Shape& x) { return x.c() * x.h() * x.w(); }

std::vector<TensorType> infer_forward(const OpParams& params, std::span<const TensorType> inputs) {
  const auto& p = static_cast<const SoftmaxParams&>(params);
  LANTERN_ASSERT(values_per_image(inputs[0].shape) % p.groups == 0,
                 "softmax groups are equal parts");
  LANTERN_ASSERT(!p.tree || p.tree->nodes() == values_per_image(inputs[0].shape),
                 "the tree has a node for every value");
  return {inputs[0]};
}

std::vector<TensorType> infer_loss(const OpParams& /*params*/, std::span<const TensorType> inputs) {
  const Shape& x = inputs[0].shape;
  LANTERN_ASSERT((inputs[1].shape == Shape{x.n(), values_per_image(x)}),
                 "the truth has a value for every value");
  return {inputs[0], inputs[0], {Shape{x.n(), 1}, DType::kF64}};
}

void gradient_forward(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kCopy, std::make_shared<const OpParams>(), {*dy}, {builder.target(op.inputs[0])});
}

// Its own loss, and that of a [cost] behind it.
void gradient_loss(GradientBuilder& builder, const Op& op) {
  gradient_forward(builder, op);
  if (!builder.wants(op.inputs[0])) return;
  builder.emit(kCopy, std::make_shared<const OpParams>(), {op.outputs[1]},
               {builder.target(op.inputs[0])});
}

// One image [C, spatial]; may run in place.
void softmax_image(const SoftmaxParams& p, const Shape& shape, const float* x, float* y) {
  if (p.tree) {
    for (const WordTree::Group& group : p.tree->groups) {
      ref::softmax_one(x + group.first, y + group.first, group.count, 1, p.temperature);
    }
    return;
  }
  if (p.spatial) {
    const std::int64_t spatial = shape.h() * shape.w();
    for (std::int64_t i = 0; i < spatial; ++i) {
      ref::softmax_one(x + i, y + i, shape.c(), spatial, p.temperature);
    }
    return;
  }
  const std::int64_t size = values_per_image(shape) / p.groups;
  for (std::int64_t g = 0; g < p.groups; ++g) {
    ref::softmax_one(x + g * size, y + g * size, size, 1, p.temperature);
  }
}

}  // namespace

std::string SoftmaxParams::describe() const {
  return fmt::format("groups={} temperature={}{}{}", groups, temperature, spatial ? " spatial" : "",
                     tree ? fmt::format(" tree of {}", tree->groups.size()) : "");
}

const graph::OpDef kSoftmaxForward{
    .name = "softmax", .infer = infer_forward, .gradient = gradient_forward};
const graph::OpDef kSoftmaxLoss{
    .name = "softmax_loss", .infer = infer_loss, .gradient = gradient_loss};

KernelChoice choose_softmax_forward(const Op& op, const SelectContext& context) {
  const SoftmaxParams params = op.params_as<SoftmaxParams>();
  const Shape shape = context.shape(op.inputs[0]);
  const std::int64_t count = values_per_image(shape);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}},
          .outputs = {Layout{}},
          .may_alias = {{0, 0}},
          .images = shape.n(),
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            parallel_for(run.images, threads, [&](std::int64_t image) {
              softmax_image(params, shape, static_cast<const float*>(o[0]) + image * count,
                            static_cast<float*>(o[1]) + image * count);
            });
          })};
}

KernelChoice choose_softmax_loss(const Op& op, const SelectContext& context) {
  const SoftmaxParams params = op.params_as<SoftmaxParams>();
  const Shape shape = context.shape(op.inputs[0]);
  const std::int64_t count = values_per_image(shape);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {Layout{}, Layout{}, Layout{}},
          .may_alias = {{0, 0}},
          .images = shape.n(),
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            parallel_for(run.images, threads, [&](std::int64_t image) {
              float* p = static_cast<float*>(o[2]) + image * count;
              softmax_image(params, shape, static_cast<const float*>(o[0]) + image * count, p);
              static_cast<double*>(o[4])[image] =
                  ref::softmax_loss(count, p, static_cast<const float*>(o[1]) + image * count,
                                    static_cast<float*>(o[3]) + image * count);
            });
          })};
}

}  // namespace lantern::ops
