#include <fmt/format.h>

#include "ops/cost/cost.hpp"
#include "ops/gaussian_yolo/gaussian_yolo.hpp"
#include "ops/head_kernel.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer_forward(const OpParams& /*params*/,
                                      std::span<const TensorType> inputs) {
  return {inputs[0]};
}

std::vector<TensorType> infer_loss(const OpParams& /*params*/, std::span<const TensorType> inputs) {
  return {inputs[0], inputs[0], {Shape{inputs[0].shape.n(), 1}, DType::kF64}};
}

// The loss wrote the gradient of its input during forward; hand it on, times delta_normalizer.
void gradient(GradientBuilder& builder, const Op& op) {
  if (!builder.wants(op.inputs[0])) return;
  const float factor = op.params_as<GaussianParams>().yolo.delta_normalizer;
  builder.emit(kCostBackward, std::make_shared<const CostParams>(CostKind::kSse, factor),
               {op.outputs[1]}, {builder.target(op.inputs[0])});
}

}  // namespace

std::string GaussianParams::describe() const {
  return fmt::format("classes={} anchors={} uc_normalizer={} point={}", yolo.classes,
                     yolo.mask.size(), uc_normalizer, static_cast<int>(point));
}

const graph::OpDef kGaussianForward{.name = "gaussian_yolo", .infer = infer_forward};
const graph::OpDef kGaussianLoss{
    .name = "gaussian_yolo_loss", .infer = infer_loss, .gradient = gradient};

KernelChoice choose_gaussian_forward(const Op& op, const SelectContext& context) {
  const auto& params = op.params_as<GaussianParams>();
  return choose_head_forward(
      op, context, params.image_size(), true,
      [params](const float* from, float* to) { gaussian_activate(params, from, to); });
}

KernelChoice choose_gaussian_loss(const Op& op, const SelectContext& context) {
  const GaussianParams params = op.params_as<GaussianParams>();
  const std::int64_t images = context.shape(op.inputs[0]).n();
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {Layout{}, Layout{}, Layout{}},
          .may_alias = {{0, 0}},
          .images = images,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const std::int64_t size = params.image_size();
            parallel_for(run.images, threads, [&](std::int64_t image) {
              float* activated = static_cast<float*>(o[2]) + image * size;
              gaussian_activate(params, static_cast<const float*>(o[0]) + image * size, activated);
              static_cast<double*>(o[4])[image] = gaussian_delta(
                  params, activated,
                  static_cast<const float*>(o[1]) + image * params.yolo.max_truths * 6,
                  static_cast<float*>(o[3]) + image * size);
            });
          })};
}

}  // namespace lantern::ops
