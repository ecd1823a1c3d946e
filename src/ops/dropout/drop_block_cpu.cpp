#include <fmt/format.h>

#include <algorithm>

#include "ops/blocks.hpp"
#include "ops/dropout/draws.hpp"
#include "ops/dropout/drop_block.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

constexpr std::int32_t kNoBlock = -1;

std::vector<TensorType> infer(const OpParams& /*params*/, std::span<const TensorType> inputs) {
  return {inputs[0]};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kDropBlockBackward, op.params, {*dy}, {builder.target(op.inputs[0])});
}

// Corner (row-major position) of the block of every channel of an image, or kNoBlock; returns how
// many there are.
std::int64_t place_blocks(const DropBlockState& state, const Draws& draws, const Shape& shape,
                          std::int32_t* corners) {
  const std::uint32_t limit = draw_limit(state.chance);
  std::int64_t blocks = 0;
  for (std::int64_t c0 = 0; c0 < shape.c(); c0 += kDrawQuad) {
    std::array<std::uint32_t, kDrawQuad> least{limit, limit, limit, limit};
    std::array<std::int32_t, kDrawQuad> where{kNoBlock, kNoBlock, kNoBlock, kNoBlock};
    for (std::int64_t s = 0; s < shape.h() * shape.w(); ++s) {
      const auto bits = draws.at(s, c0 / kDrawQuad);
      for (std::size_t k = 0; k < kDrawQuad; ++k) {
        if (bits[k] >= least[k]) continue;
        least[k] = bits[k];
        where[k] = static_cast<std::int32_t>(s);
      }
    }
    for (std::int64_t k = 0; k < std::min<std::int64_t>(kDrawQuad, shape.c() - c0); ++k) {
      std::int32_t& corner = corners[c0 + k];
      corner = where[static_cast<std::size_t>(k)];
      if (corner == kNoBlock) continue;
      ++blocks;
      const std::int64_t y = std::min(corner / shape.w(), shape.h() - state.side);
      const std::int64_t x = std::min(corner % shape.w(), shape.w() - state.side);
      corner = static_cast<std::int32_t>(y * shape.w() + x);
    }
  }
  return blocks;
}

// 1 / (1 - dropped share); 0 where nothing is left.
float kept_factor(const DropBlockState& state, std::int64_t blocks, const Shape& shape) {
  const std::int64_t values = shape.c() * shape.h() * shape.w();
  const std::int64_t kept = values - blocks * state.side * state.side;
  return kept > 0 ? static_cast<float>(static_cast<double>(values) / static_cast<double>(kept))
                  : 0.0F;
}

bool inside(std::int32_t corner, std::int64_t side, std::int64_t y, std::int64_t x,
            std::int64_t w) {
  const std::int64_t top = corner / w;
  const std::int64_t left = corner % w;
  return corner != kNoBlock && y >= top && y < top + side && x >= left && x < left + side;
}

KernelChoice choose(const Op& op, const SelectContext& context, const Layout& layout) {
  const DropBlockParams params = op.params_as<DropBlockParams>();
  const Shape shape = context.shape(op.inputs[0]);
  const BlockedExtents e(shape, layout.block);
  const bool accumulate = op.accumulates[0];
  const int threads = context.threads;
  KernelChoice choice{.name = "cpu",
                      .inputs = {layout},
                      .outputs = {layout},
                      .scratch = {e.n * e.c * static_cast<Bytes>(sizeof(std::int32_t))},
                      .images = e.n};
  if (!accumulate) choice.may_alias.push_back({0, 0});
  choice.kernel = make_kernel([=](std::span<void* const> o, const RunContext& run) {
    const auto* src = static_cast<const float*>(o[0]);
    auto* dst = static_cast<float*>(o[1]);
    const DropBlockState state = drop_block_state(params, run, shape.h(), shape.w());
    parallel_for(run.images, threads, [&](std::int64_t image) {
      auto* corners = static_cast<std::int32_t*>(o[2]) + image * e.c;
      const Draws draws(params.layer, run, e.n, run.first_image + image, e.c);
      const float factor = kept_factor(state, place_blocks(state, draws, shape, corners), shape);
      for (std::int64_t cb = 0; cb < e.blocks; ++cb) {
        for (std::int64_t s = 0; s < e.spatial; ++s) {
          for (int lane = 0; lane < e.block; ++lane) {
            const std::int64_t at = e.offset(image, cb) + s * e.block + lane;
            const bool dropped =
                lane >= e.lanes_used(cb) || inside(corners[cb * e.block + lane], state.side,
                                                   s / shape.w(), s % shape.w(), shape.w());
            const float value = dropped ? 0.0F : src[at] * factor;
            dst[at] = accumulate ? dst[at] + value : value;
          }
        }
      }
    });
  });
  return choice;
}

}  // namespace

std::string DropBlockParams::describe() const {
  return fmt::format("probability={} size_abs={} size_rel={} layer={}", probability, size_abs,
                     size_rel, layer);
}

DropBlockState drop_block_state(const DropBlockParams& params, const RunContext& context,
                                std::int64_t h, std::int64_t w) {
  const double ramp = 0.85 * static_cast<double>(context.max_iterations);
  const double share =
      ramp > 0 ? std::min(1.0, static_cast<double>(context.iteration) / ramp) : 1.0;
  const std::int64_t smaller = std::min(h, w);
  const double size = params.size_abs > 0
                          ? static_cast<double>(params.size_abs)
                          : static_cast<double>(params.size_rel) * static_cast<double>(smaller);
  DropBlockState state;
  state.side = std::clamp<std::int64_t>(static_cast<std::int64_t>(size * share), 1, smaller);
  state.chance = std::clamp(static_cast<double>(params.probability) * share /
                                static_cast<double>(state.side * state.side),
                            0.0, 1.0);
  return state;
}

const graph::OpDef kDropBlockForward{.name = "drop_block", .infer = infer, .gradient = gradient};
const graph::OpDef kDropBlockBackward{.name = "drop_block_backward"};

void drop_block_factors(const DropBlockParams& params, const RunContext& context,
                        std::int64_t images, std::int64_t image, const Shape& shape,
                        float* factors) {
  const DropBlockState state = drop_block_state(params, context, shape.h(), shape.w());
  std::vector<std::int32_t> corners(static_cast<std::size_t>(shape.c()));
  const Draws draws(params.layer, context, images, image, shape.c());
  const float factor = kept_factor(state, place_blocks(state, draws, shape, corners.data()), shape);
  for (std::int64_t c = 0; c < shape.c(); ++c) {
    for (std::int64_t s = 0; s < shape.h() * shape.w(); ++s) {
      *factors++ = inside(corners[static_cast<std::size_t>(c)], state.side, s / shape.w(),
                          s % shape.w(), shape.w())
                       ? 0.0F
                       : factor;
    }
  }
}

KernelChoice choose_drop_block_forward(const Op& op, const SelectContext& context) {
  return choose(op, context, context.data_layout(op.inputs[0]));
}

KernelChoice choose_drop_block_backward(const Op& op, const SelectContext& context) {
  return choose(op, context, context.data_layout(op.accumulates[0] ? op.outputs[0] : op.inputs[0]));
}

}  // namespace lantern::ops
