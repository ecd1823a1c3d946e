#include <fmt/format.h>

#include "ops/activation/activation_op.hpp"
#include "ops/activation/activation_simd.hpp"
#include "ops/activation/channel_activation.hpp"
#include "ops/blocks.hpp"
#include "ops/parallel.hpp"
#include "ops/simd.hpp"

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
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  const Activation kind = op.params_as<ActivationParams>().activation;
  const TensorId saved = derivative_from_output(kind) ? op.outputs[0] : op.inputs[0];
  builder.emit(kActivationBackward, op.params, {*dy, saved}, {builder.target(op.inputs[0])});
}

// Elementwise over whole planes; padding lanes are written as zero.
template <int B, typename Body>
void for_each_vector(const BlockedExtents& e, int threads, Body body) {
  parallel_for(e.n * e.blocks, threads, [&](std::int64_t job) {
    const std::int64_t cb = job % e.blocks;
    const std::int64_t base = job * e.plane();
    const bool whole = e.lanes_used(cb) == B;
    const auto used = lane_mask<B>(e.lanes_used(cb));
    for (std::int64_t i = base; i < base + e.plane(); i += B) body(i, whole, used);
  });
}

template <int B>
void forward(const float* x, float* y, const BlockedExtents& e, Activation kind, int threads) {
  with_activation(kind, [&](auto act) {
    for_each_vector<B>(e, threads, [&](std::int64_t i, bool whole, auto used) {
      auto value = activate<B>(act(), load<B>(x + i));
      if (!whole) value = select<B>(used, value, splat<B>(0.0F));
      store<B>(y + i, value);
    });
  });
}

template <int B>
void backward(const float* dy, const float* saved, float* dx, const BlockedExtents& e,
              Activation kind, bool accumulate, int threads) {
  with_activation(kind, [&](auto act) {
    for_each_vector<B>(e, threads, [&](std::int64_t i, bool, auto) {
      const auto s = load<B>(saved + i);
      auto value = load<B>(dy + i) * activation_slope<B>(act(), s, s);
      if (accumulate) value += load<B>(dx + i);
      store<B>(dx + i, value);
    });
  });
}

}  // namespace

std::string ActivationParams::describe() const {
  return fmt::format("activation={}", to_string(activation));
}

const graph::OpDef kActivationForward{.name = "activation", .infer = infer, .gradient = gradient};
const graph::OpDef kActivationBackward{.name = "activation_backward"};

KernelChoice choose_activation_forward(const Op& op, const SelectContext& context) {
  const Activation kind = op.params_as<ActivationParams>().activation;
  const int threads = context.threads;
  // Kinds that mix channels run on plain planes.
  const Layout layout = mixes_channels(kind) ? Layout{} : context.data_layout(op.inputs[0]);
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  KernelChoice choice{.name = "cpu",
                      .inputs = {layout},
                      .outputs = {layout},
                      .images = e.n,
                      .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
                        const BlockedExtents part = e.with_images(run.images);
                        const auto* x = static_cast<const float*>(o[0]);
                        auto* y = static_cast<float*>(o[1]);
                        if (mixes_channels(kind)) {
                          activate_channels(kind, x, y, part.n, e.c, e.spatial, threads);
                        } else {
                          with_block(e.block,
                                     [&](auto b) { forward<b()>(x, y, part, kind, threads); });
                        }
                      })};
  if (!mixes_channels(kind)) choice.may_alias.push_back({0, 0});
  return choice;
}

KernelChoice choose_activation_backward(const Op& op, const SelectContext& context) {
  const Activation kind = op.params_as<ActivationParams>().activation;
  const int threads = context.threads;
  const bool accumulate = op.accumulates[0];
  Layout layout = mixes_channels(kind) ? Layout{} : context.data_layout(op.inputs[1]);
  if (accumulate && !mixes_channels(kind)) layout = context.data_layout(op.outputs[0]);
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  KernelChoice choice{.name = "cpu",
                      .inputs = {layout, layout},
                      .outputs = {layout},
                      .images = e.n,
                      .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
                        const BlockedExtents part = e.with_images(run.images);
                        const auto* dy = static_cast<const float*>(o[0]);
                        const auto* saved = static_cast<const float*>(o[1]);
                        auto* dx = static_cast<float*>(o[2]);
                        if (mixes_channels(kind)) {
                          channel_gradient(kind, saved, dy, dx, part.n, e.c, e.spatial, accumulate,
                                           threads);
                        } else {
                          with_block(e.block, [&](auto b) {
                            backward<b()>(dy, saved, dx, part, kind, accumulate, threads);
                          });
                        }
                      })};
  if (!accumulate && !mixes_channels(kind)) choice.may_alias.push_back({0, 0});
  return choice;
}

}  // namespace lantern::ops
