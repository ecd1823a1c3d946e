#include "core/error.hpp"
#include "ops/batch_norm/batch_norm_pool.hpp"
#include "ops/batch_norm/batch_norm_simd.hpp"
#include "ops/kernel.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

namespace {

using batch_norm::behind_activation;
using batch_norm::ChannelBlock;
using batch_norm::Channels;
using batch_norm::Extents;
using batch_norm::lanes_used;

/// Maps before and behind the pool; `pooled` also gives the segments in which sums are made.
struct PoolExtents {
  Extents source, pooled;
  std::int64_t source_w = 0, pooled_w = 0;
  std::int64_t images = 0;      ///< of the mini-batch
  std::int64_t run_images = 0;  ///< of this run

  PoolExtents of_run(const RunContext& run) const {
    PoolExtents e = *this;
    e.run_images = run.images;
    return e;
  }
};

// Float offsets of a window's four cells from its first, in row-major order.
struct Window {
  std::int64_t cell[4];
  Window(const PoolExtents& e)
      : cell{0, e.source.block, e.source_w * e.source.block, (e.source_w + 1) * e.source.block} {}
};

// body(image, channel block, segment, first window, end window)
template <typename Body>
void for_each_segment(const PoolExtents& e, int threads, Body body) {
  const std::int64_t segments = e.pooled.segments();
  parallel_for(e.run_images * e.pooled.blocks() * segments, threads, [&](std::int64_t job) {
    const std::int64_t segment = job % segments;
    const std::int64_t plane = job / segments;
    const std::int64_t begin = segment * Extents::kSegment;
    body(plane / e.pooled.blocks(), plane % e.pooled.blocks(), segment, begin,
         std::min(e.pooled.spatial, begin + Extents::kSegment));
  });
}

// body(offset of the window's first cell in a source plane, offset of the window in a pooled plane)
template <int B, typename Body>
void for_each_window(const PoolExtents& e, std::int64_t begin, std::int64_t end, Body body) {
  std::int64_t y = begin / e.pooled_w;
  std::int64_t x = begin % e.pooled_w;
  for (std::int64_t window = begin; window < end; ++window) {
    body((2 * y * e.source_w + 2 * x) * B, window * B);
    if (++x == e.pooled_w) {
      x = 0;
      ++y;
    }
  }
}

template <int B>
typename Vec<B>::Int load_index(const std::uint8_t* p) {
  typename Vec<B>::Byte narrow;
  std::memcpy(&narrow, p, sizeof narrow);
  return __builtin_convertvector(narrow, typename Vec<B>::Int);
}

Channels channels_at(std::span<void* const> o, std::size_t first) {
  return {static_cast<const float*>(o[first]), static_cast<const float*>(o[first + 1]),
          static_cast<const float*>(o[first + 2]), static_cast<const float*>(o[first + 3])};
}

std::int64_t source_plane(const PoolExtents& e, std::int64_t image, std::int64_t cb) {
  return image * e.source.dense_stride() + cb * e.source.spatial * e.source.block;
}
std::int64_t pooled_plane(const PoolExtents& e, std::int64_t image, std::int64_t cb) {
  return image * e.pooled.dense_stride() + cb * e.pooled.spatial * e.pooled.block;
}

// Operands: x, mean, variance, gamma, beta, pooled[, index].
template <int B, bool kKeepIndex, typename Act>
void forward(std::span<void* const> o, const PoolExtents& e, Act act, int threads) {
  using Int = typename Vec<B>::Int;
  for_each_segment(
      e, threads,
      [&](std::int64_t image, std::int64_t cb, std::int64_t, std::int64_t begin, std::int64_t end) {
        const ChannelBlock<B> block(channels_at(o, 1), e.source, cb);
        const float* x = static_cast<const float*>(o[0]) + source_plane(e, image, cb);
        float* pooled = static_cast<float*>(o[5]) + pooled_plane(e, image, cb);
        std::uint8_t* index = nullptr;
        if constexpr (kKeepIndex)
          index = static_cast<std::uint8_t*>(o[6]) + pooled_plane(e, image, cb);
        const Window window(e);
        const bool whole = lanes_used(e.source, cb) == B;
        for_each_window<B>(e, begin, end, [&](std::int64_t source, std::int64_t target) {
          auto best = activate<B>(act(), block.z(load<B>(x + source)));
          Int position = {};
          for (int k = 1; k < 4; ++k) {
            const auto value = activate<B>(act(), block.z(load<B>(x + source + window.cell[k])));
            const Int better = value > best;
            best = better ? value : best;
            if constexpr (kKeepIndex) position = better ? Int{} + k : position;
          }
          if (!whole) best = select<B>(block.used, best, splat<B>(0.0F));
          store<B>(pooled + target, best);
          if constexpr (kKeepIndex) {
            const auto narrow = __builtin_convertvector(position, typename Vec<B>::Byte);
            std::memcpy(index + target, &narrow, sizeof narrow);
          }
        });
      });
}

// The value of x that was the largest of its window.
template <int B>
typename Vec<B>::Float at_maximum(const float* x, std::int64_t source, const Window& window,
                                  typename Vec<B>::Int position) {
  auto value = load<B>(x + source);
  for (int k = 1; k < 4; ++k) value = position == k ? load<B>(x + source + window.cell[k]) : value;
  return value;
}

// Operands: d_pooled, index, x, mean, variance, gamma, beta, sum_dz, sum_dz_xhat, partial sums.
// Only the largest cell of a window has a gradient, so one value a window is summed.
template <int B, typename Act>
void backward_reduce(std::span<void* const> o, const PoolExtents& e, const RunContext& run, Act act,
                     int threads) {
  using Double = typename Vec<B>::Double;
  auto* partial =
      batch_norm::partial_of_image(e.pooled, static_cast<double*>(o[9]), run.first_image);
  for_each_segment(
      e, threads,
      [&](std::int64_t image, std::int64_t cb, std::int64_t segment, std::int64_t begin,
          std::int64_t end) {
        const ChannelBlock<B> block(channels_at(o, 3), e.source, cb);
        const float* d_pooled = static_cast<const float*>(o[0]) + pooled_plane(e, image, cb);
        const std::uint8_t* index =
            static_cast<const std::uint8_t*>(o[1]) + pooled_plane(e, image, cb);
        const float* x = static_cast<const float*>(o[2]) + source_plane(e, image, cb);
        const Window window(e);
        Double sum = {};
        Double products = {};
        for_each_window<B>(e, begin, end, [&](std::int64_t source, std::int64_t target) {
          const auto value = at_maximum<B>(x, source, window, load_index<B>(index + target));
          const Double dz = __builtin_convertvector(
              behind_activation<B>(act, block, load<B>(d_pooled + target), value), Double);
          sum += dz;
          products += dz * __builtin_convertvector(block.xhat(value), Double);
        });
        double* sums = batch_norm::partial_of(partial, e.pooled, image, segment, cb);
        std::memcpy(sums, &sum, sizeof sum);
        std::memcpy(sums + e.pooled.padded(), &products, sizeof products);
      });
  if (!run.is_last()) return;
  batch_norm::finish_reduce(e.pooled, static_cast<double*>(o[9]), e.images,
                            static_cast<float*>(o[7]), static_cast<float*>(o[8]));
}

// Operands: d_pooled, index, x, mean, variance, gamma, beta, sum_dz, sum_dz_xhat, dx.
template <int B, typename Act>
void backward_apply(std::span<void* const> o, const PoolExtents& e, bool fixed, Act act,
                    int threads) {
  const auto count = static_cast<float>(e.images * e.source.spatial);
  for_each_segment(
      e, threads,
      [&](std::int64_t image, std::int64_t cb, std::int64_t, std::int64_t begin, std::int64_t end) {
        const ChannelBlock<B> block(channels_at(o, 3), e.source, cb);
        auto mean_dz = splat<B>(0.0F);
        auto mean_dz_xhat = splat<B>(0.0F);
        for (int lane = 0; lane < lanes_used(e.source, cb) && !fixed; ++lane) {
          mean_dz[lane] = static_cast<const float*>(o[7])[cb * B + lane] / count;
          mean_dz_xhat[lane] = static_cast<const float*>(o[8])[cb * B + lane] / count;
        }
        const auto factor = block.gamma * block.invstd;
        const float* d_pooled = static_cast<const float*>(o[0]) + pooled_plane(e, image, cb);
        const std::uint8_t* index =
            static_cast<const std::uint8_t*>(o[1]) + pooled_plane(e, image, cb);
        const float* x = static_cast<const float*>(o[2]) + source_plane(e, image, cb);
        float* dx = static_cast<float*>(o[9]) + source_plane(e, image, cb);
        const Window window(e);
        const bool whole = lanes_used(e.source, cb) == B;
        for_each_window<B>(e, begin, end, [&](std::int64_t source, std::int64_t target) {
          const auto position = load_index<B>(index + target);
          const auto d = load<B>(d_pooled + target);
          const auto dz_max =
              behind_activation<B>(act, block, d, at_maximum<B>(x, source, window, position));
          for (int k = 0; k < 4; ++k) {
            const auto value = load<B>(x + source + window.cell[k]);
            const auto dz = position == k ? dz_max : splat<B>(0.0F);
            auto result = factor * (dz - mean_dz - block.xhat(value) * mean_dz_xhat);
            if (!whole) result = select<B>(block.used, result, splat<B>(0.0F));
            store<B>(dx + source + window.cell[k], result);
          }
        });
      });
}

struct Setup {
  Layout layout;
  PoolExtents extents;
};

Setup set_up(graph::TensorId x, const SelectContext& context) {
  const Layout layout = context.data_layout(x);
  const Shape& shape = context.shape(x);
  PoolExtents e;
  e.source = {.c = shape.c(), .spatial = shape.h() * shape.w(), .block = layout.block};
  e.pooled = {.c = shape.c(), .spatial = e.source.spatial / 4, .block = layout.block};
  e.source_w = shape.w();
  e.pooled_w = shape.w() / 2;
  e.images = shape.n();
  return {layout, e};
}

}  // namespace

KernelChoice choose_batch_norm_pool(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<BatchNormPoolParams>();
  const Setup s = set_up(op.inputs[0], context);
  KernelChoice choice{.name = "cpu",
                      .inputs = {s.layout, Layout{}, Layout{}, Layout{}, Layout{}},
                      .outputs = {s.layout},
                      .images = s.extents.images};
  if (params.keeps_index) choice.outputs.push_back(s.layout);
  choice.kernel =
      make_kernel([s, threads = context.threads, keeps = params.keeps_index,
                   kind = params.activation](std::span<void* const> o, const RunContext& run) {
        const PoolExtents e = s.extents.of_run(run);
        batch_norm::with_block_and_activation(e.source, kind, [&](auto b, auto act) {
          if (keeps) {
            forward<b(), true>(o, e, act, threads);
          } else {
            forward<b(), false>(o, e, act, threads);
          }
        });
      });
  return choice;
}

KernelChoice choose_batch_norm_pool_backward_reduce(const graph::Op& op,
                                                    const SelectContext& context) {
  const Setup s = set_up(op.inputs[2], context);
  return {.name = "cpu",
          .inputs = {s.layout, s.layout, s.layout, Layout{}, Layout{}, Layout{}, Layout{}},
          .outputs = {Layout{}, Layout{}},
          .scratch = {batch_norm::partial_bytes(s.extents.pooled, s.extents.images)},
          .images = s.extents.images,
          .carries = true,
          .kernel = make_kernel([s, threads = context.threads,
                                 kind = op.params_as<BatchNormPoolParams>().activation](
                                    std::span<void* const> o, const RunContext& run) {
            batch_norm::with_block_and_activation(s.extents.source, kind, [&](auto b, auto act) {
              backward_reduce<b()>(o, s.extents.of_run(run), run, act, threads);
            });
          })};
}

KernelChoice choose_batch_norm_pool_backward_apply(const graph::Op& op,
                                                   const SelectContext& context) {
  LANTERN_ASSERT(!op.accumulates[0], "only this op reads the convolution it normalises");
  const auto& params = op.params_as<BatchNormPoolParams>();
  const Setup s = set_up(op.inputs[2], context);
  return {.name = "cpu",
          .inputs = {s.layout, s.layout, s.layout, Layout{}, Layout{}, Layout{}, Layout{}, Layout{},
                     Layout{}},
          .outputs = {s.layout},
          .may_alias = {{0, 2}},
          .images = s.extents.images,
          .kernel = make_kernel([s, threads = context.threads, fixed = params.fixed,
                                 kind = params.activation](std::span<void* const> o,
                                                           const RunContext& run) {
            batch_norm::with_block_and_activation(s.extents.source, kind, [&](auto b, auto act) {
              backward_apply<b()>(o, s.extents.of_run(run), fixed, act, threads);
            });
          })};
}

}  // namespace lantern::ops
