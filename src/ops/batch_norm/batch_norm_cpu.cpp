#include "ops/batch_norm/batch_norm_cpu.hpp"

#include "core/error.hpp"
#include "ops/batch_norm/batch_norm.hpp"
#include "ops/batch_norm/batch_norm_kernels.hpp"

namespace lantern::ops {

namespace {

using batch_norm::Channels;
using batch_norm::Extents;
using batch_norm::Maps;

struct Setup {
  Layout layout;
  Extents extents;
  std::int64_t images = 0;
};

Setup set_up(graph::TensorId x, const SelectContext& context) {
  const Layout layout = context.data_layout(x);
  const Shape& shape = context.shape(x);
  return {
      layout, {.c = shape.c(), .spatial = shape.h() * shape.w(), .block = layout.block}, shape.n()};
}

Maps<const float> read(void* operand, const Extents& e) {
  return {static_cast<const float*>(operand), e.dense_stride()};
}

// The gradient of y: dense, or a slice of channels of a wider tensor.
struct Incoming {
  std::int64_t offset = 0, image_stride = 0;  // floats
  bool is_slice = false;

  Incoming(const Shape& tensor, const Shape& own, std::int64_t first, const Extents& e)
      : is_slice(tensor.c() != own.c()) {
    const Extents wide{.c = tensor.c(), .spatial = e.spatial, .block = e.block};
    LANTERN_ASSERT(first % e.block == 0, "a slice begins with a channel block");
    offset = first * e.spatial;
    image_stride = wide.dense_stride();
  }
  Maps<const float> at(void* operand) const {
    return {static_cast<const float*>(operand) + offset, image_stride};
  }
};

Maps<float> write(void* operand, const Extents& e) {
  return {static_cast<float*>(operand), e.dense_stride()};
}

// mean, variance, gamma, beta stand one behind the other among the operands of every op.
Channels channels_at(std::span<void* const> o, std::size_t first) {
  return {static_cast<const float*>(o[first]), static_cast<const float*>(o[first + 1]),
          static_cast<const float*>(o[first + 2]), static_cast<const float*>(o[first + 3])};
}

float* floats(void* operand) { return static_cast<float*>(operand); }

}  // namespace

KernelChoice choose_batch_norm_statistics(const graph::Op& op, const SelectContext& context) {
  const Setup s = set_up(op.inputs[0], context);
  return {.name = "cpu",
          .inputs = {s.layout},
          .outputs = {Layout{}, Layout{}},
          .scratch = {batch_norm::partial_bytes(s.extents, s.images)},
          .images = s.images,
          .carries = true,
          .kernel = make_kernel([s, threads = context.threads](std::span<void* const> o,
                                                               const RunContext& run) {
            auto* partial = static_cast<double*>(o[3]);
            batch_norm::partial_statistics(
                s.extents, read(o[0], s.extents), 0, run.images,
                batch_norm::partial_of_image(s.extents, partial, run.first_image), threads);
            if (!run.is_last()) return;
            batch_norm::finish_statistics(s.extents, partial, s.images, floats(o[1]), floats(o[2]));
          })};
}

KernelChoice choose_batch_norm_apply(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<BatchNormParams>();
  const Setup s = set_up(op.inputs[0], context);
  KernelChoice choice{.name = "cpu",
                      .inputs = {s.layout, Layout{}, Layout{}, Layout{}, Layout{}},
                      .outputs = {s.layout},
                      .may_alias = {{0, 0}},
                      .images = s.images};
  if (params.residual) {
    choice.inputs.push_back(s.layout);
    choice.may_alias.push_back({0, 5});
  }
  choice.kernel =
      make_kernel([s, threads = context.threads, residual = params.residual,
                   kind = params.activation](std::span<void* const> o, const RunContext& run) {
        const Maps<const float> side = residual ? read(o[5], s.extents) : Maps<const float>{};
        batch_norm::apply(s.extents, channels_at(o, 1), read(o[0], s.extents), side,
                          write(o[residual ? 6 : 5], s.extents), kind, 0, run.images, threads);
      });
  return choice;
}

KernelChoice choose_batch_norm_backward_reduce(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<BatchNormParams>();
  const Setup s = set_up(op.inputs[1], context);
  const Incoming dy(context.shape(op.inputs[0]), context.shape(op.inputs[1]), params.gradient_first,
                    s.extents);
  return {.name = "cpu",
          .inputs = {s.layout, s.layout, Layout{}, Layout{}, Layout{}, Layout{}},
          .outputs = {Layout{}, Layout{}},
          .scratch = {batch_norm::partial_bytes(s.extents, s.images)},
          .images = s.images,
          .carries = true,
          .kernel = make_kernel([s, dy, threads = context.threads, kind = params.activation](
                                    std::span<void* const> o, const RunContext& run) {
            auto* partial = static_cast<double*>(o[8]);
            batch_norm::partial_reduce(
                s.extents, channels_at(o, 2), dy.at(o[0]), read(o[1], s.extents), kind, 0,
                run.images, batch_norm::partial_of_image(s.extents, partial, run.first_image),
                threads);
            if (!run.is_last()) return;
            batch_norm::finish_reduce(s.extents, partial, s.images, floats(o[6]), floats(o[7]));
          })};
}

KernelChoice choose_batch_norm_backward_apply(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<BatchNormParams>();
  const Setup s = set_up(op.inputs[1], context);
  const Incoming dy(context.shape(op.inputs[0]), context.shape(op.inputs[1]), params.gradient_first,
                    s.extents);
  const bool accumulate = op.accumulates[0];
  KernelChoice choice{
      .name = "cpu",
      .inputs = {s.layout, s.layout, Layout{}, Layout{}, Layout{}, Layout{}, Layout{}, Layout{}},
      .outputs = {s.layout},
      .images = s.images};
  if (!accumulate && !dy.is_slice) choice.may_alias.push_back({0, 0});
  choice.kernel =
      make_kernel([s, dy, threads = context.threads, accumulate, fixed = params.fixed,
                   kind = params.activation](std::span<void* const> o, const RunContext& run) {
        batch_norm::backward_apply(s.extents, channels_at(o, 2), fixed ? nullptr : floats(o[6]),
                                   fixed ? nullptr : floats(o[7]), s.images * s.extents.spatial,
                                   dy.at(o[0]), read(o[1], s.extents), write(o[8], s.extents), kind,
                                   accumulate, 0, run.images, threads);
      });
  return choice;
}

KernelChoice choose_batch_norm_rolling(const graph::Op& op, const SelectContext& context) {
  const std::int64_t channels = context.shape(op.inputs[0])[0];
  const auto count = static_cast<float>(op.params_as<BatchNormRollingParams>().values_per_channel);
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {Layout{}, Layout{}},
          .kernel = make_kernel([channels, count](std::span<void* const> o, const RunContext&) {
            const float* mean = floats(o[0]);
            const float* variance = floats(o[1]);
            float* rolling_mean = floats(o[2]);
            float* rolling_variance = floats(o[3]);
            const float unbiased = count > 1 ? count / (count - 1) : 1.0F;
            for (std::int64_t c = 0; c < channels; ++c) {
              rolling_mean[c] =
                  (1 - kRollingMomentum) * rolling_mean[c] + kRollingMomentum * mean[c];
              rolling_variance[c] = (1 - kRollingMomentum) * rolling_variance[c] +
                                    kRollingMomentum * variance[c] * unbiased;
            }
          })};
}

}  // namespace lantern::ops
