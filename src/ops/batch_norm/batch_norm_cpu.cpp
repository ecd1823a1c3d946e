#include "ops/batch_norm/batch_norm_cpu.hpp"

#include <cmath>

#include "ops/activation/activation_simd.hpp"
#include "ops/batch_norm/batch_norm.hpp"
#include "ops/blocks.hpp"
#include "ops/parallel.hpp"
#include "ops/simd.hpp"

namespace lantern::ops {

namespace {

// A plane is summed in segments of fixed length, so that the order of summation does not depend on the thread count.
constexpr std::int64_t kSegment = 4096;

std::int64_t segments_of(const BlockedExtents& e) { return ceil_div(e.spatial, kSegment); }

// Two double sums for every (image, segment, channel): [n][segments][2][blocks * block].
Bytes partial_bytes(const BlockedExtents& e) {
  return e.n * segments_of(e) * 2 * e.blocks * e.block * static_cast<Bytes>(sizeof(double));
}

double* partial_of(void* scratch, const BlockedExtents& e, std::int64_t image, std::int64_t segment) {
  return static_cast<double*>(scratch) + (image * segments_of(e) + segment) * 2 * e.blocks * e.block;
}

// body(image, channel block, segment, first position, end position)
template <typename Body>
void for_each_segment(const BlockedExtents& e, int threads, Body body) {
  const std::int64_t segments = segments_of(e);
  parallel_for(e.n * e.blocks * segments, threads, [&](std::int64_t job) {
    const std::int64_t segment = job % segments;
    const std::int64_t plane = job / segments;
    const std::int64_t begin = segment * kSegment;
    body(plane / e.blocks, plane % e.blocks, segment, begin, std::min(e.spatial, begin + kSegment));
  });
}

// Adds the partial sums of all images in image order; finish(channel, first sum, second sum).
template <typename Finish>
void combine(void* scratch, const BlockedExtents& e, Finish finish) {
  const std::int64_t padded = e.blocks * e.block;
  const std::int64_t parts = e.n * segments_of(e);
  const auto* partials = static_cast<const double*>(scratch);
  for (std::int64_t c = 0; c < padded; ++c) {
    double first = 0;
    double second = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      first += partials[part * 2 * padded + c];
      second += partials[part * 2 * padded + padded + c];
    }
    finish(c, first, second);
  }
}

template <int B>
void statistics(const float* x, float* mean, float* variance, void* scratch, const BlockedExtents& e, int threads) {
  using Double = typename Vec<B>::Double;
  for_each_segment(e, threads, [&](std::int64_t image, std::int64_t cb, std::int64_t segment, std::int64_t begin,
                                   std::int64_t end) {
    const float* plane = x + e.offset(image, cb);
    Double sum = {};
    Double squares = {};
    for (std::int64_t i = begin; i < end; ++i) {
      const Double v = __builtin_convertvector(load<B>(plane + i * B), Double);
      sum += v;
      squares += v * v;
    }
    double* partial = partial_of(scratch, e, image, segment) + cb * B;
    std::memcpy(partial, &sum, sizeof sum);
    std::memcpy(partial + e.blocks * B, &squares, sizeof squares);
  });
  const double count = static_cast<double>(e.n * e.spatial);
  combine(scratch, e, [&](std::int64_t c, double sum, double squares) {
    if (c >= e.c) return;
    const double m = sum / count;
    mean[c] = static_cast<float>(m);
    variance[c] = static_cast<float>(std::max(0.0, squares / count - m * m));
  });
}

// The affine form of normalisation for one channel block: xhat = x * scale + shift, z = xhat * gamma + beta.
template <int B>
struct Channel {
  typename Vec<B>::Float mean, invstd, gamma, beta;
  typename Vec<B>::Int used;

  Channel(const float* m, const float* v, const float* g, const float* b, const BlockedExtents& e, std::int64_t cb)
      : used(lane_mask<B>(e.lanes_used(cb))) {
    for (int lane = 0; lane < B; ++lane) {
      const std::int64_t c = cb * B + lane;
      const bool real = c < e.c;
      mean[lane] = real ? m[c] : 0.0F;
      invstd[lane] = real ? 1.0F / std::sqrt(v[c] + kBatchNormEpsilon) : 0.0F;
      gamma[lane] = real ? g[c] : 0.0F;
      beta[lane] = real ? b[c] : 0.0F;
    }
  }
  typename Vec<B>::Float xhat(typename Vec<B>::Float x) const { return (x - mean) * invstd; }
  typename Vec<B>::Float z(typename Vec<B>::Float x) const { return xhat(x) * gamma + beta; }
};

template <int B, typename Act>
void apply(std::span<void* const> o, const BlockedExtents& e, bool residual, Act act, int threads) {
  const auto* x = static_cast<const float*>(o[0]);
  const auto* r = residual ? static_cast<const float*>(o[5]) : nullptr;
  auto* y = static_cast<float*>(o[residual ? 6 : 5]);
  for_each_segment(e, threads, [&](std::int64_t image, std::int64_t cb, std::int64_t, std::int64_t begin,
                                   std::int64_t end) {
    const Channel<B> channel(static_cast<float*>(o[1]), static_cast<float*>(o[2]), static_cast<float*>(o[3]),
                             static_cast<float*>(o[4]), e, cb);
    const std::int64_t base = e.offset(image, cb);
    const bool whole = e.lanes_used(cb) == B;
    for (std::int64_t i = base + begin * B; i < base + end * B; i += B) {
      auto value = activate<B>(act(), channel.z(load<B>(x + i)));
      if (r != nullptr) value += load<B>(r + i);
      if (!whole) value = select<B>(channel.used, value, splat<B>(0.0F));
      store<B>(y + i, value);
    }
  });
}

// dz: gradient behind the activation, with z recomputed from x by the same arithmetic as forward.
template <int B, typename Act>
inline typename Vec<B>::Float behind_activation(Act act, const Channel<B>& channel, typename Vec<B>::Float dy,
                                                typename Vec<B>::Float x) {
  if (act() == Activation::kLinear) return dy;
  const auto z = channel.z(x);
  return dy * activation_slope<B>(act(), z, derivative_from_output(act()) ? activate<B>(act(), z) : z);
}

template <int B, typename Act>
void backward_reduce(std::span<void* const> o, const BlockedExtents& e, Act act, int threads) {
  using Double = typename Vec<B>::Double;
  const auto* dy = static_cast<const float*>(o[0]);
  const auto* x = static_cast<const float*>(o[1]);
  void* scratch = o[8];
  for_each_segment(e, threads, [&](std::int64_t image, std::int64_t cb, std::int64_t segment, std::int64_t begin,
                                   std::int64_t end) {
    const Channel<B> channel(static_cast<float*>(o[2]), static_cast<float*>(o[3]), static_cast<float*>(o[4]),
                             static_cast<float*>(o[5]), e, cb);
    const std::int64_t base = e.offset(image, cb);
    Double sum = {};
    Double products = {};
    for (std::int64_t i = base + begin * B; i < base + end * B; i += B) {
      const auto value = load<B>(x + i);
      const Double dz = __builtin_convertvector(behind_activation<B>(act, channel, load<B>(dy + i), value), Double);
      sum += dz;
      products += dz * __builtin_convertvector(channel.xhat(value), Double);
    }
    double* partial = partial_of(scratch, e, image, segment) + cb * B;
    std::memcpy(partial, &sum, sizeof sum);
    std::memcpy(partial + e.blocks * B, &products, sizeof products);
  });
  auto* sum_dz = static_cast<float*>(o[6]);
  auto* sum_dz_xhat = static_cast<float*>(o[7]);
  combine(scratch, e, [&](std::int64_t c, double sum, double products) {
    if (c >= e.c) return;
    sum_dz[c] = static_cast<float>(sum);
    sum_dz_xhat[c] = static_cast<float>(products);
  });
}

template <int B, typename Act>
void backward_apply(std::span<void* const> o, const BlockedExtents& e, bool fixed, bool accumulate, Act act,
                    int threads) {
  const auto* dy = static_cast<const float*>(o[0]);
  const auto* x = static_cast<const float*>(o[1]);
  auto* dx = static_cast<float*>(o[8]);
  const float count = static_cast<float>(e.n * e.spatial);
  for_each_segment(e, threads, [&](std::int64_t image, std::int64_t cb, std::int64_t, std::int64_t begin,
                                   std::int64_t end) {
    const Channel<B> channel(static_cast<float*>(o[2]), static_cast<float*>(o[3]), static_cast<float*>(o[4]),
                             static_cast<float*>(o[5]), e, cb);
    auto mean_dz = splat<B>(0.0F);
    auto mean_dz_xhat = splat<B>(0.0F);
    for (int lane = 0; lane < e.lanes_used(cb) && !fixed; ++lane) {
      mean_dz[lane] = static_cast<const float*>(o[6])[cb * B + lane] / count;
      mean_dz_xhat[lane] = static_cast<const float*>(o[7])[cb * B + lane] / count;
    }
    const auto factor = channel.gamma * channel.invstd;
    const std::int64_t base = e.offset(image, cb);
    const bool whole = e.lanes_used(cb) == B;
    for (std::int64_t i = base + begin * B; i < base + end * B; i += B) {
      const auto value = load<B>(x + i);
      const auto dz = behind_activation<B>(act, channel, load<B>(dy + i), value);
      auto result = factor * (dz - mean_dz - channel.xhat(value) * mean_dz_xhat);
      if (!whole) result = select<B>(channel.used, result, splat<B>(0.0F));
      if (accumulate) result += load<B>(dx + i);
      store<B>(dx + i, result);
    }
  });
}

}  // namespace

KernelChoice choose_batch_norm_statistics(const graph::Op& op, const SelectContext& context) {
  const Layout layout = context.data_layout(op.inputs[0]);
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {Layout{}, Layout{}},
          .scratch = {partial_bytes(e)},
          .kernel = make_kernel([e, threads](std::span<void* const> o, const RunContext&) {
            with_block(e.block, [&](auto b) {
              statistics<b()>(static_cast<const float*>(o[0]), static_cast<float*>(o[1]), static_cast<float*>(o[2]),
                              o[3], e, threads);
            });
          })};
}

KernelChoice choose_batch_norm_apply(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<BatchNormParams>();
  const Layout layout = context.data_layout(op.inputs[0]);
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  const int threads = context.threads;
  KernelChoice choice{
      .name = "cpu",
      .inputs = {layout, Layout{}, Layout{}, Layout{}, Layout{}},
      .outputs = {layout},
      .may_alias = {{0, 0}},
      .kernel = make_kernel([e, threads, residual = params.residual, kind = params.activation](
                                std::span<void* const> o, const RunContext&) {
        with_block(e.block, [&](auto b) {
          with_activation(kind, [&](auto act) { apply<b()>(o, e, residual, act, threads); });
        });
      })};
  if (params.residual) {
    choice.inputs.push_back(layout);
    choice.may_alias.push_back({0, 5});
  }
  return choice;
}

KernelChoice choose_batch_norm_backward_reduce(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<BatchNormParams>();
  const Layout layout = context.data_layout(op.inputs[1]);
  const BlockedExtents e(context.shape(op.inputs[1]), layout.block);
  const int threads = context.threads;
  return {.name = "cpu",
          .inputs = {layout, layout, Layout{}, Layout{}, Layout{}, Layout{}},
          .outputs = {Layout{}, Layout{}},
          .scratch = {partial_bytes(e)},
          .kernel = make_kernel([e, threads, kind = params.activation](std::span<void* const> o, const RunContext&) {
            with_block(e.block, [&](auto b) {
              with_activation(kind, [&](auto act) { backward_reduce<b()>(o, e, act, threads); });
            });
          })};
}

KernelChoice choose_batch_norm_backward_apply(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<BatchNormParams>();
  const Layout layout = context.data_layout(op.inputs[1]);
  const BlockedExtents e(context.shape(op.inputs[1]), layout.block);
  const int threads = context.threads;
  const bool accumulate = op.accumulates[0];
  KernelChoice choice{.name = "cpu",
                      .inputs = {layout, layout, Layout{}, Layout{}, Layout{}, Layout{}, Layout{}, Layout{}},
                      .outputs = {layout},
                      .kernel = make_kernel([e, threads, accumulate, fixed = params.fixed, kind = params.activation](
                                                std::span<void* const> o, const RunContext&) {
                        with_block(e.block, [&](auto b) {
                          with_activation(kind, [&](auto act) {
                            backward_apply<b()>(o, e, fixed, accumulate, act, threads);
                          });
                        });
                      })};
  if (!accumulate) choice.may_alias.push_back({0, 0});
  return choice;
}

KernelChoice choose_batch_norm_rolling(const graph::Op& op, const SelectContext& context) {
  const std::int64_t channels = context.shape(op.inputs[0])[0];
  const auto count = static_cast<float>(op.params_as<BatchNormRollingParams>().values_per_channel);
  return {.name = "cpu",
          .inputs = {Layout{}, Layout{}},
          .outputs = {Layout{}, Layout{}},
          .kernel = make_kernel([channels, count](std::span<void* const> o, const RunContext&) {
            const auto* mean = static_cast<const float*>(o[0]);
            const auto* variance = static_cast<const float*>(o[1]);
            auto* rolling_mean = static_cast<float*>(o[2]);
            auto* rolling_variance = static_cast<float*>(o[3]);
            const float unbiased = count > 1 ? count / (count - 1) : 1.0F;
            for (std::int64_t c = 0; c < channels; ++c) {
              rolling_mean[c] = (1 - kRollingMomentum) * rolling_mean[c] + kRollingMomentum * mean[c];
              rolling_variance[c] =
                  (1 - kRollingMomentum) * rolling_variance[c] + kRollingMomentum * variance[c] * unbiased;
            }
          })};
}

}  // namespace lantern::ops
