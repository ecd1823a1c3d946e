#include <algorithm>
#include <limits>

#include "ops/blocks.hpp"
#include "ops/max_pool/max_pool.hpp"
#include "ops/parallel.hpp"
#include "ops/simd.hpp"

namespace lantern::ops {

namespace {

// Valid window rows (or columns) of one output position.
struct Range {
  std::int64_t begin, end;
};
Range window(std::int64_t out, std::int64_t stride, std::int64_t pad, std::int64_t kernel,
             std::int64_t extent) {
  const std::int64_t start = out * stride - pad;
  return {std::max<std::int64_t>(0, -start), std::min(kernel, extent - start)};
}

// Whether a first or last window lies wholly in the padding.
bool may_cover_nothing(const PoolGeometry& g) {
  return g.ph >= g.kh || g.pw >= g.kw || (g.oh - 1) * g.sh - g.ph >= g.ih ||
         (g.ow - 1) * g.sw - g.pw >= g.iw;
}

template <typename Index, int B>
void store_index(Index* p, typename Vec<B>::Int index) {
  if constexpr (sizeof(Index) == 1) {
    const typename Vec<B>::Byte narrow = __builtin_convertvector(index, typename Vec<B>::Byte);
    std::memcpy(p, &narrow, sizeof narrow);
  } else {
    std::memcpy(p, &index, sizeof index);
  }
}

// One image and channel block. The window maximum is separable: first along rows into `rows` (best
// of each window row with its column), then down columns; strict comparisons keep the first maximum
// in row-major order. A window without a cell gives the lowest finite number, and zero in lanes
// beyond the `used` ones.
template <int B, typename Index, bool kKeepIndex>
void pool_plane(const PoolGeometry& g, int used, const float* src, float* dst, Index* index,
                float* row_best, std::int32_t* row_column) {
  using Float = typename Vec<B>::Float;
  using Int = typename Vec<B>::Int;
  const Float lowest = splat<B>(-std::numeric_limits<float>::infinity());
  const auto best_of_row = [&](std::int64_t y, std::int64_t ox, Int& column) {
    const Range kx = window(ox, g.sw, g.pw, g.kw, g.iw);
    Float best = lowest;
    column = Int{} + static_cast<std::int32_t>(kx.begin);
    const float* row = src + (y * g.iw + ox * g.sw - g.pw) * B;
    for (std::int64_t k = kx.begin; k < kx.end; ++k) {
      const Float value = load<B>(row + k * B);
      const Int better = value > best;
      best = better ? value : best;
      if constexpr (kKeepIndex) column = better ? Int{} + static_cast<std::int32_t>(k) : column;
    }
    return best;
  };
  const bool sparse = may_cover_nothing(g);
  const Float nothing =
      select<B>(lane_mask<B>(used), splat<B>(std::numeric_limits<float>::lowest()), splat<B>(0.0F));
  // Overlapping windows share their row maxima; others compute them on the way.
  const bool shared_rows = g.sh < g.kh;
  if (shared_rows) {
    for (std::int64_t y = 0; y < g.ih; ++y) {
      for (std::int64_t ox = 0; ox < g.ow; ++ox) {
        Int column;
        store<B>(row_best + (y * g.ow + ox) * B, best_of_row(y, ox, column));
        if constexpr (kKeepIndex)
          std::memcpy(row_column + (y * g.ow + ox) * B, &column, sizeof column);
      }
    }
  }
  for (std::int64_t oy = 0; oy < g.oh; ++oy) {
    const Range ky = window(oy, g.sh, g.ph, g.kh, g.ih);
    for (std::int64_t ox = 0; ox < g.ow; ++ox) {
      Float best = lowest;
      Int position = {};
      for (std::int64_t k = ky.begin; k < ky.end; ++k) {
        const std::int64_t y = oy * g.sh - g.ph + k;
        Int column;
        Float value;
        if (shared_rows) {
          value = load<B>(row_best + (y * g.ow + ox) * B);
          if constexpr (kKeepIndex)
            std::memcpy(&column, row_column + (y * g.ow + ox) * B, sizeof column);
        } else {
          value = best_of_row(y, ox, column);
        }
        Int better = value > best;
        if (k == ky.begin)
          better = better | ~better;  // the first row always counts, -infinity included
        best = better ? value : best;
        if constexpr (kKeepIndex)
          position = better ? column + static_cast<std::int32_t>(k * g.kw) : position;
      }
      if (sparse) {
        const Range kx = window(ox, g.sw, g.pw, g.kw, g.iw);
        if (ky.begin >= ky.end || kx.begin >= kx.end) best = nothing;
      }
      const std::int64_t out = (oy * g.ow + ox) * B;
      store<B>(dst + out, best);
      if constexpr (kKeepIndex) store_index<Index, B>(index + out, position);
    }
  }
}

// Non-overlapping windows: every source cell belongs to at most one window, so each is written
// once.
template <int B, typename Index>
void scatter_disjoint(const PoolGeometry& g, const float* diff_dst, const Index* index,
                      float* diff_src, bool accumulate) {
  using Float = typename Vec<B>::Float;
  using Int = typename Vec<B>::Int;
  if (!accumulate) std::fill_n(diff_src, g.ih * g.iw * B, 0.0F);
  for (std::int64_t oy = 0; oy < g.oh; ++oy) {
    const Range ky = window(oy, g.sh, g.ph, g.kh, g.ih);
    for (std::int64_t ox = 0; ox < g.ow; ++ox) {
      const Range kx = window(ox, g.sw, g.pw, g.kw, g.iw);
      const std::int64_t out = (oy * g.ow + ox) * B;
      const Float d = load<B>(diff_dst + out);
      Int position;
      for (int lane = 0; lane < B; ++lane)
        position[lane] = static_cast<std::int32_t>(index[out + lane]);
      for (std::int64_t y = ky.begin; y < ky.end; ++y) {
        float* row = diff_src + ((oy * g.sh - g.ph + y) * g.iw + ox * g.sw - g.pw) * B;
        for (std::int64_t x = kx.begin; x < kx.end; ++x) {
          const Int here = position == static_cast<std::int32_t>(y * g.kw + x);
          const Float value = here ? d : Float{};
          store<B>(row + x * B, accumulate ? load<B>(row + x * B) + value : value);
        }
      }
    }
  }
}

// Overlapping small windows: every source cell gathers from the windows that cover it, a channel
// block at a time, in the order in which scatter_overlapping would add.
template <int B, typename Index>
void gather_overlapping(const PoolGeometry& g, const float* diff_dst, const Index* index,
                        float* diff_src, bool accumulate) {
  using Float = typename Vec<B>::Float;
  using Int = typename Vec<B>::Int;
  // First and last output whose window covers a source position.
  const auto covering = [](std::int64_t at, std::int64_t stride, std::int64_t pad,
                           std::int64_t kernel, std::int64_t outs) {
    const std::int64_t reach = at + pad - kernel + 1;
    return Range{reach <= 0 ? 0 : ceil_div(reach, stride), std::min(outs, (at + pad) / stride + 1)};
  };
  for (std::int64_t y = 0; y < g.ih; ++y) {
    const Range oys = covering(y, g.sh, g.ph, g.kh, g.oh);
    for (std::int64_t x = 0; x < g.iw; ++x) {
      const Range oxs = covering(x, g.sw, g.pw, g.kw, g.ow);
      float* target = diff_src + (y * g.iw + x) * B;
      Float sum = accumulate ? load<B>(target) : Float{};
      for (std::int64_t oy = oys.begin; oy < oys.end; ++oy) {
        for (std::int64_t ox = oxs.begin; ox < oxs.end; ++ox) {
          const std::int64_t out = (oy * g.ow + ox) * B;
          const auto cell =
              static_cast<std::int32_t>((y + g.ph - oy * g.sh) * g.kw + x + g.pw - ox * g.sw);
          Int position;
          for (int lane = 0; lane < B; ++lane)
            position[lane] = static_cast<std::int32_t>(index[out + lane]);
          sum += position == cell ? load<B>(diff_dst + out) : Float{};
        }
      }
      store<B>(target, sum);
    }
  }
}

// Overlapping windows: one plane is small and handled by one thread, so adding value by value has a
// fixed order.
template <int B, typename Index>
void scatter_overlapping(const PoolGeometry& g, const float* diff_dst, const Index* index,
                         float* diff_src, bool accumulate) {
  if (!accumulate) std::fill_n(diff_src, g.ih * g.iw * B, 0.0F);
  for (std::int64_t oy = 0; oy < g.oh; ++oy) {
    for (std::int64_t ox = 0; ox < g.ow; ++ox) {
      const std::int64_t out = (oy * g.ow + ox) * B;
      for (int lane = 0; lane < B; ++lane) {
        const auto position = static_cast<std::int64_t>(index[out + lane]);
        const std::int64_t y = oy * g.sh - g.ph + position / g.kw;
        const std::int64_t x = ox * g.sw - g.pw + position % g.kw;
        // A window that lies wholly in the padding has no maximum and passes no gradient.
        if (y < 0 || x < 0 || y >= g.ih || x >= g.iw) continue;
        diff_src[(y * g.iw + x) * B + lane] += diff_dst[out + lane];
      }
    }
  }
}

Bytes row_bytes(const PoolGeometry& g, int block) {
  return g.sh < g.kh ? g.ih * g.ow * block * static_cast<Bytes>(sizeof(float)) : 0;
}

}  // namespace

KernelChoice choose_max_pool_forward(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<PoolParams>();
  const PoolGeometry g = params.geometry;
  const Layout layout = context.data_layout(op.inputs[0]);
  const int threads = context.threads;
  const BlockedExtents in(Shape{g.n, g.c, g.ih, g.iw}, layout.block);
  const BlockedExtents out(Shape{g.n, g.c, g.oh, g.ow}, layout.block);
  const bool wide_index = g.kh * g.kw > 256;
  const Bytes rows = round_up(row_bytes(g, layout.block), 64);
  KernelChoice choice{.name = "cpu", .inputs = {layout}, .outputs = {layout}, .images = g.n};
  if (params.keeps_index) choice.outputs.push_back(layout);
  choice.scratch = {rows * 2 * threads};
  choice.kernel = make_kernel([=, keeps = params.keeps_index](std::span<void* const> o,
                                                              const RunContext& run) {
    with_block(layout.block, [&](auto b) {
      constexpr int kBlock = b();
      parallel_for(run.images * in.blocks, threads, [&](std::int64_t job) {
        const auto* src = static_cast<const float*>(o[0]) + job * in.plane();
        auto* dst = static_cast<float*>(o[1]) + job * out.plane();
        auto* scratch = static_cast<std::byte*>(o.back()) + rows * 2 * omp_get_thread_num();
        auto* row_best = reinterpret_cast<float*>(scratch);
        auto* row_column = reinterpret_cast<std::int32_t*>(scratch + rows);
        const int used = in.lanes_used(job % in.blocks);
        if (!keeps) {
          pool_plane<kBlock, std::uint8_t, false>(g, used, src, dst, nullptr, row_best, row_column);
        } else if (wide_index) {
          auto* index = static_cast<std::int32_t*>(o[2]) + job * out.plane();
          pool_plane<kBlock, std::int32_t, true>(g, used, src, dst, index, row_best, row_column);
        } else {
          auto* index = static_cast<std::uint8_t*>(o[2]) + job * out.plane();
          pool_plane<kBlock, std::uint8_t, true>(g, used, src, dst, index, row_best, row_column);
        }
      });
    });
  });
  return choice;
}

KernelChoice choose_max_pool_backward(const graph::Op& op, const SelectContext& context) {
  const PoolGeometry g = op.params_as<PoolParams>().geometry;
  // The index was written in the layout of the forward output; the gradient follows it.
  const Layout layout = context.data_layout(op.inputs[1]);
  const int threads = context.threads;
  const BlockedExtents in(Shape{g.n, g.c, g.ih, g.iw}, layout.block);
  const BlockedExtents out(Shape{g.n, g.c, g.oh, g.ow}, layout.block);
  const bool wide_index = g.kh * g.kw > 256;
  const bool disjoint = g.sh >= g.kh && g.sw >= g.kw;
  const bool small = g.kh * g.kw <= 36;  // beyond it, adding value by value is less work
  const bool accumulate = op.accumulates[0];
  return {.name = disjoint ? "cpu:disjoint"
                  : small  ? "cpu:gather"
                           : "cpu",
          .inputs = {layout, layout},
          .outputs = {layout},
          .images = g.n,
          .kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
            with_block(layout.block, [&](auto b) {
              constexpr int kBlock = b();
              parallel_for(run.images * in.blocks, threads, [&](std::int64_t job) {
                const auto* diff_dst = static_cast<const float*>(o[0]) + job * out.plane();
                auto* diff_src = static_cast<float*>(o[2]) + job * in.plane();
                const auto scatter = [&](const auto* index) {
                  if (disjoint) {
                    scatter_disjoint<kBlock>(g, diff_dst, index, diff_src, accumulate);
                  } else if (small) {
                    gather_overlapping<kBlock>(g, diff_dst, index, diff_src, accumulate);
                  } else {
                    scatter_overlapping<kBlock>(g, diff_dst, index, diff_src, accumulate);
                  }
                };
                if (wide_index) {
                  scatter(static_cast<const std::int32_t*>(o[1]) + job * out.plane());
                } else {
                  scatter(static_cast<const std::uint8_t*>(o[1]) + job * out.plane());
                }
              });
            });
          })};
}

}  // namespace lantern::ops
