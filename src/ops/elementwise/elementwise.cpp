#include "ops/elementwise/elementwise.hpp"

#include <algorithm>
#include <cstring>

#include "ops/parallel.hpp"

namespace lantern::ops {

namespace {
std::vector<graph::TensorType> infer_same(const graph::OpParams& /*params*/,
                                          std::span<const graph::TensorType> inputs) {
  return {inputs[0]};
}

void gradient_copy(graph::GradientBuilder& builder, const graph::Op& op) {
  const std::optional<graph::TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy) return;
  builder.emit(kCopy, op.params, {*dy}, {builder.target(op.inputs[0])});
}
}  // namespace

const graph::OpDef kCopy{.name = "copy", .infer = infer_same, .gradient = gradient_copy};
const graph::OpDef kAddParameterGradient{.name = "add_parameter_gradient"};

KernelChoice choose_copy(const graph::Op& op, const SelectContext& context) {
  const graph::Tensor& source = context.graph.tensor(op.inputs[0]);
  Layout layout = source.type.shape.rank() == 4 ? context.data_layout(op.inputs[0])
                                                : context.layout(op.inputs[0]).value_or(Layout{});
  if (op.accumulates[0]) layout = context.layout(op.outputs[0]).value_or(layout);
  const std::int64_t images = std::min(context.images(op.inputs[0]), context.images(op.outputs[0]));
  const auto count =
      layout.bytes(source.type.shape, DType::kF32) / static_cast<Bytes>(sizeof(float));
  const bool accumulate = op.accumulates[0];
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = images,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            const auto* src = static_cast<const float*>(o[0]);
            auto* dst = static_cast<float*>(o[1]);
            if (src == dst) return;
            const std::int64_t part = images > 0 ? count / images * run.images : count;
            parallel_ranges(part, threads, [&](std::int64_t begin, std::int64_t end) {
              if (accumulate) {
                for (std::int64_t i = begin; i < end; ++i) dst[i] += src[i];
              } else {
                std::memcpy(dst + begin, src + begin,
                            static_cast<std::size_t>(end - begin) * sizeof(float));
              }
            });
          })};
}

KernelChoice choose_add_parameter_gradient(const graph::Op& op, const SelectContext& context) {
  const std::int64_t count = context.shape(op.inputs[0]).elements();
  return {.name = "cpu",
          .inputs = {Layout{}},
          .outputs = {Layout{}},
          .kernel = make_kernel([count](std::span<void* const> o, const RunContext& run) {
            const auto* src = static_cast<const float*>(o[0]);
            auto* dst = static_cast<float*>(o[1]);
            for (std::int64_t i = 0; i < count; ++i)
              dst[i] = (run.subdivision == 0 ? 0.0F : dst[i]) + src[i];
          })};
}

}  // namespace lantern::ops
