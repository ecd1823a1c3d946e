#include <fmt/format.h>

#include "ops/elementwise/elementwise.hpp"
#include "ops/head_kernel.hpp"
#include "ops/parallel.hpp"
#include "ops/region/region.hpp"

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

// The loss wrote the gradient of its input during forward; hand it on.
void gradient(GradientBuilder& builder, const Op& op) {
  if (!builder.wants(op.inputs[0])) return;
  builder.emit(kCopy, std::make_shared<const OpParams>(), {op.outputs[1]},
               {builder.target(op.inputs[0])});
}

}  // namespace

std::string RegionParams::describe() const {
  return fmt::format("classes={} boxes={}{}{}{}{}", classes, boxes(), softmax ? " softmax" : "",
                     bias_match ? " bias_match" : "",
                     coords != 4 ? fmt::format(" coords={}", coords) : "",
                     tree ? fmt::format(" tree of {}", tree->groups.size()) : "");
}

const graph::OpDef kRegionForward{.name = "region", .infer = infer_forward};
const graph::OpDef kRegionLoss{.name = "region_loss", .infer = infer_loss, .gradient = gradient};

KernelChoice choose_region_forward(const Op& op, const SelectContext& context) {
  const auto& params = op.params_as<RegionParams>();
  return choose_head_forward(
      op, context, params.image_size(), false,
      [params](const float* from, float* to) { region_activate(params, from, to); });
}

KernelChoice choose_region_loss(const Op& op, const SelectContext& context) {
  const RegionParams params = op.params_as<RegionParams>();
  const std::int64_t images = context.shape(op.inputs[0]).n();
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {Layout{}, Layout{}, Layout{}},
          .images = images,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const std::int64_t size = params.image_size();
            const double seen = run.images_seen();
            const bool anchor_prior = seen < static_cast<double>(kAnchorPriorImages);
            parallel_for(run.images, threads, [&](std::int64_t image) {
              float* output = static_cast<float*>(o[2]) + image * size;
              region_activate(params, static_cast<const float*>(o[0]) + image * size, output);
              static_cast<double*>(o[4])[image] = region_delta(
                  params, output, static_cast<const float*>(o[1]) + image * params.max_truths * 6,
                  anchor_prior, static_cast<float*>(o[3]) + image * size);
            });
          })};
}

}  // namespace lantern::ops
