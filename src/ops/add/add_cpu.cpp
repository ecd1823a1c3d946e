#include <algorithm>

#include "ops/add/add.hpp"
#include "ops/add/add_pairs.hpp"
#include "ops/blocks.hpp"
#include "ops/elementwise/elementwise.hpp"
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
  const TensorId dst = op.outputs[0];
  const std::optional<TensorId> dy = builder.gradient(dst);
  if (!dy) return;
  const bool sharable = !builder.is_borrowed(dst);
  bool taken = false;                                   // one source may go on with the buffer
  const Shape shape = builder.graph().type(dst).shape;  // a copy: new tensors move the list
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const TensorId input = op.inputs[i];
    if (!builder.wants(input)) continue;
    const bool free = sharable && !builder.gradient(input) &&
                      builder.graph().type(input).shape == shape &&
                      std::ranges::count(op.inputs, input) == 1;
    if (free && i == 0 && builder.readers(input) == 1) {
      builder.share_gradient(input, dst, kCopy, true);
    } else if (free && i > 0 && !taken) {
      builder.share_gradient(input, dst, kCopy);
      taken = true;
    } else if (builder.graph().type(input).shape == shape) {
      builder.emit(kCopy, op.params, {*dy}, {builder.target(input)});
    } else {
      builder.emit(kAddBackward, op.params, {*dy}, {builder.target(input)});
    }
  }
}

}  // namespace

const graph::OpDef kAddForward{.name = "add", .infer = infer, .gradient = gradient};
const graph::OpDef kAddBackward{.name = "add_backward"};

KernelChoice choose_add_forward(const Op& op, const SelectContext& context) {
  const Layout layout = context.data_layout(op.inputs[0]);
  const Shape result = context.shape(op.outputs[0]);
  const BlockedExtents e(result, layout.block);
  const int threads = context.threads;
  std::vector<Shape> shapes;
  for (const TensorId id : op.inputs) shapes.push_back(context.shape(id));
  KernelChoice choice{.name = "cpu",
                      .inputs = std::vector<Layout>(op.inputs.size(), layout),
                      .outputs = {layout},
                      .may_alias = {{0, 0}},
                      .images = e.n};
  choice.kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
    const std::int64_t count = e.with_images(run.images).elements();
    auto* dst = static_cast<float*>(o.back());
    const auto* base = static_cast<const float*>(o[0]);
    for (std::size_t k = 1; k < shapes.size(); ++k) {
      const auto* source = static_cast<const float*>(o[k]);
      if (shapes[k] == result) {
        parallel_ranges(count, threads, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) dst[i] = base[i] + source[i];
        });
      } else {
        if (base != dst) std::copy_n(base, count, dst);
        parallel_for(run.images, threads, [&](std::int64_t image) {
          for_each_add_pair(
              result, shapes[k], layout.block, image,
              [&](std::int64_t, std::int64_t a, std::int64_t b) { dst[a] += source[b]; });
        });
      }
      base = dst;
    }
  });
  return choice;
}

KernelChoice choose_add_backward(const Op& op, const SelectContext& context) {
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[0]);
  const Shape result = context.shape(op.inputs[0]);
  const Shape source = context.shape(op.outputs[0]);
  const BlockedExtents to(source, layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = to.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* dy = static_cast<const float*>(o[0]);
            auto* dx = static_cast<float*>(o[1]);
            parallel_for(run.images, threads, [&](std::int64_t image) {
              if (!accumulate) std::fill_n(dx + to.offset(image, 0), to.blocks * to.plane(), 0.0F);
              for_each_add_pair(
                  result, source, layout.block, image,
                  [&](std::int64_t, std::int64_t a, std::int64_t b) { dx[b] += dy[a]; });
            });
          })};
}

}  // namespace lantern::ops
