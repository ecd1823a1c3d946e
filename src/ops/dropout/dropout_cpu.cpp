#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/blocks.hpp"
#include "ops/dropout/draws.hpp"
#include "ops/dropout/dropout.hpp"
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
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy || !builder.wants(op.inputs[0])) return;
  builder.emit(kDropoutBackward, op.params, {*dy}, {builder.target(op.inputs[0])});
}

constexpr int kQuad = kDrawQuad;

// Factors of one image, by channel quads.
class Mask {
 public:
  Mask(float probability, int layer, const RunContext& run, std::int64_t images, std::int64_t image,
       std::int64_t channels)
      : draws_(layer, run, images, image, channels),
        limit_(draw_limit(static_cast<double>(probability))),
        factor_(probability < 1 ? 1.0F / (1.0F - probability) : 0.0F) {}

  /// Factors of channels 4 * quad .. 4 * quad + 3 at a position: 0 or 1 / (1 - p).
  std::array<float, kQuad> factors(std::int64_t position, std::int64_t quad) const {
    const auto bits = draws_.at(position, quad);
    std::array<float, kQuad> result{};
    for (std::size_t i = 0; i < kQuad; ++i) result[i] = bits[i] < limit_ ? 0.0F : factor_;
    return result;
  }

 private:
  Draws draws_;
  std::uint32_t limit_;
  float factor_;
};

// dst (+)= src * mask over one run of channels that lie together: a channel block, or four plain
// planes.
void apply(const Mask& mask, const BlockedExtents& e, const float* src, float* dst,
           std::int64_t image, std::int64_t group, bool accumulate) {
  const std::int64_t channels = std::max<std::int64_t>(e.block, kQuad);  // of a group
  const std::int64_t first = group * channels;
  for (std::int64_t quad = 0; quad < channels / kQuad; ++quad) {
    const std::int64_t c0 = first + quad * kQuad;
    if (e.block == 1 && c0 >= e.c) break;
    for (std::int64_t s = 0; s < e.spatial; ++s) {
      std::array<float, kQuad> factors{};
      if (c0 < e.c) factors = mask.factors(s, c0 / kQuad);
      for (std::int64_t lane = 0; lane < kQuad; ++lane) {
        const std::int64_t c = c0 + lane;
        if (e.block == 1 && c >= e.c) break;
        const std::int64_t at = e.offset(image, c / e.block) + s * e.block + c % e.block;
        // Channel padding stays zero: it was zero in src.
        const float value = factors[static_cast<std::size_t>(lane)] == 0.0F
                                ? 0.0F
                                : src[at] * factors[static_cast<std::size_t>(lane)];
        dst[at] = accumulate ? dst[at] + value : value;
      }
    }
  }
}

KernelChoice choose(const Op& op, const SelectContext& context, const Layout& layout) {
  const auto& params = op.params_as<DropoutParams>();
  const BlockedExtents e(context.shape(op.inputs[0]), layout.block);
  const bool accumulate = op.accumulates[0];
  const int threads = context.threads;
  KernelChoice choice{.name = "cpu", .inputs = {layout}, .outputs = {layout}, .images = e.n};
  if (!accumulate) choice.may_alias.push_back({0, 0});
  choice.kernel = make_kernel([=, probability = params.probability, layer = params.layer](
                                  std::span<void* const> o, const RunContext& run) {
    const std::int64_t groups = ceil_div(e.blocks * e.block, std::max(e.block, kQuad));
    parallel_for(run.images * groups, threads, [&](std::int64_t job) {
      const Mask mask(probability, layer, run, e.n, run.first_image + job / groups, e.c);
      apply(mask, e, static_cast<const float*>(o[0]), static_cast<float*>(o[1]), job / groups,
            job % groups, accumulate);
    });
  });
  return choice;
}

}  // namespace

std::string DropoutParams::describe() const {
  return fmt::format("probability={} layer={}", probability, layer);
}

const graph::OpDef kDropoutForward{.name = "dropout", .infer = infer, .gradient = gradient};
const graph::OpDef kDropoutBackward{.name = "dropout_backward"};

void dropout_factors(const DropoutParams& params, const RunContext& context, std::int64_t images,
                     std::int64_t image, std::int64_t channels, std::int64_t spatial,
                     float* factors) {
  const Mask mask(params.probability, params.layer, context, images, image, channels);
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t s = 0; s < spatial; ++s) {
      factors[c * spatial + s] = mask.factors(s, c / kQuad)[static_cast<std::size_t>(c % kQuad)];
    }
  }
}

KernelChoice choose_dropout_forward(const Op& op, const SelectContext& context) {
  return choose(op, context, context.data_layout(op.inputs[0]));
}

KernelChoice choose_dropout_backward(const Op& op, const SelectContext& context) {
  return choose(op, context, context.data_layout(op.accumulates[0] ? op.outputs[0] : op.inputs[0]));
}

}  // namespace lantern::ops
