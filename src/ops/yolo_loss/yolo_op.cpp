#include "ops/yolo_loss/yolo_op.hpp"

#include <fmt/format.h>

#include "ops/cost/cost.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/head_kernel.hpp"
#include "ops/parallel.hpp"
#include "ops/yolo_loss/yolo_loss.hpp"

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
  const std::int64_t images = inputs[0].shape.n();
  return {inputs[0],
          inputs[0],
          {Shape{images, static_cast<std::int64_t>(sizeof(YoloImageStats))}, DType::kU8}};
}

// The loss wrote the gradient of its input during forward; hand it on, times delta_normalizer.
void gradient(GradientBuilder& builder, const Op& op) {
  if (!builder.wants(op.inputs[0])) return;
  const float factor = op.params_as<YoloOpParams>().yolo.delta_normalizer;
  if (factor == 1) {
    builder.emit(kCopy, std::make_shared<const OpParams>(), {op.outputs[1]},
                 {builder.target(op.inputs[0])});
  } else {
    builder.emit(kCostBackward, std::make_shared<const CostParams>(CostKind::kSse, factor),
                 {op.outputs[1]}, {builder.target(op.inputs[0])});
  }
}

}  // namespace

std::string YoloOpParams::describe() const {
  std::string mask;
  for (const int m : yolo.mask) mask += fmt::format("{}{}", mask.empty() ? "" : ",", m);
  return fmt::format("classes={} mask={} scale_x_y={}{}", yolo.classes, mask, yolo.scale_x_y,
                     yolo.new_coords ? " new_coords" : "");
}

const graph::OpDef kYoloForward{.name = "yolo", .infer = infer_forward};
const graph::OpDef kYoloLoss{.name = "yolo_loss", .infer = infer_loss, .gradient = gradient};

KernelChoice choose_yolo_forward(const Op& op, const SelectContext& context) {
  const auto& params = op.params_as<YoloOpParams>().yolo;
  return choose_head_forward(
      op, context, yolo_image_size(params), true,
      [params](const float* from, float* to) { yolo_activate(params, from, to); });
}

KernelChoice choose_yolo_loss(const Op& op, const SelectContext& context) {
  const YoloParams params = op.params_as<YoloOpParams>().yolo;
  const std::int64_t images = context.shape(op.inputs[0]).n();
  const int threads = context.threads;
  const Bytes scratch = round_up(yolo_scratch_bytes(params), 64);
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {Layout{}, Layout{}, Layout{}},
          .scratch = {scratch * threads},
          .may_alias = {{0, 0}},
          .images = images,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const std::int64_t size = yolo_image_size(params);
            auto* stats = static_cast<YoloImageStats*>(o[4]);
            parallel_for(run.images, threads, [&](std::int64_t image) {
              float* activated = static_cast<float*>(o[2]) + image * size;
              yolo_activate(params, static_cast<const float*>(o[0]) + image * size, activated);
              auto* own = static_cast<std::byte*>(o[5]) + scratch * omp_get_thread_num();
              stats[image] =
                  yolo_delta(params, activated,
                             static_cast<const float*>(o[1]) + image * params.max_truths * 6,
                             static_cast<float*>(o[3]) + image * size,
                             std::span(own, static_cast<std::size_t>(scratch)));
            });
          })};
}

}  // namespace lantern::ops
