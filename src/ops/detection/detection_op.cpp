#include <fmt/format.h>

#include "core/error.hpp"
#include "ops/detection/detection.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/head_kernel.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer_forward(const OpParams& params, std::span<const TensorType> inputs) {
  const auto& p = static_cast<const DetectionParams&>(params);
  LANTERN_ASSERT(inputs[0].shape.elements() == inputs[0].shape.n() * p.image_size(),
                 "the head has the inputs it was made for");
  return {inputs[0]};
}

std::vector<TensorType> infer_loss(const OpParams& params, std::span<const TensorType> inputs) {
  const std::vector<TensorType> output = infer_forward(params, inputs);
  return {output[0], output[0], {Shape{inputs[0].shape.n(), 1}, DType::kF64}};
}

// The loss wrote the gradient of its input during forward; hand it on.
void gradient(GradientBuilder& builder, const Op& op) {
  if (!builder.wants(op.inputs[0])) return;
  builder.emit(kCopy, std::make_shared<const OpParams>(), {op.outputs[1]},
               {builder.target(op.inputs[0])});
}

}  // namespace

std::string DetectionParams::describe() const {
  return fmt::format("classes={} boxes={} side={}{}{}{}{}{}", classes, boxes, side,
                     softmax ? " softmax" : "", sqrt ? " sqrt" : "", rescore ? " rescore" : "",
                     forced ? " forced" : "", random ? " random" : "");
}

const graph::OpDef kDetectionForward{.name = "detection", .infer = infer_forward};
const graph::OpDef kDetectionLoss{
    .name = "detection_loss", .infer = infer_loss, .gradient = gradient};

KernelChoice choose_detection_forward(const Op& op, const SelectContext& context) {
  const auto& params = op.params_as<DetectionParams>();
  return choose_head_forward(
      op, context, params.image_size(), false,
      [params](const float* from, float* to) { detection_activate(params, from, to); });
}

KernelChoice choose_detection_loss(const Op& op, const SelectContext& context) {
  const DetectionParams params = op.params_as<DetectionParams>();
  const std::int64_t images = context.shape(op.inputs[0]).n();
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {Layout{}, Layout{}, Layout{}},
          .images = images,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const std::int64_t size = params.image_size();
            const double seen = run.images_seen();
            const bool draws = params.random && seen < static_cast<double>(kRandomBoxImages);
            parallel_for(run.images, threads, [&](std::int64_t image) {
              float* output = static_cast<float*>(o[2]) + image * size;
              detection_activate(params, static_cast<const float*>(o[0]) + image * size, output);
              const DetectionDraw draw{.seed = run.seed,
                                       .iteration = static_cast<std::uint64_t>(run.iteration),
                                       .image = static_cast<std::uint32_t>(
                                           run.subdivision * images + run.first_image + image)};
              static_cast<double*>(o[4])[image] = detection_delta(
                  params, output, static_cast<const float*>(o[1]) + image * params.max_truths * 6,
                  draws ? &draw : nullptr, static_cast<float*>(o[3]) + image * size);
            });
          })};
}

}  // namespace lantern::ops
