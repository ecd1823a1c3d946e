#include <fmt/format.h>

#include <cstring>

#include "ops/blocks.hpp"
#include "ops/concat/concat.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

using graph::GradientBuilder;
using graph::Op;
using graph::OpParams;
using graph::TensorId;
using graph::TensorType;

namespace {

std::vector<TensorType> infer(const OpParams& params, std::span<const TensorType> inputs) {
  const auto& p = static_cast<const ConcatParams&>(params);
  Shape out = inputs[0].shape;
  std::int64_t channels = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& in = inputs[i].shape;
    LANTERN_ASSERT(in.n() == out.n() && in.h() == out.h() && in.w() == out.w() &&
                       p.slices[i].first + p.slices[i].count <= in.c(),
                   "concatenated maps have equal sizes");
    channels += p.slices[i].count;
  }
  out.set(1, channels);
  return {{out, DType::kF32}};
}

void gradient(GradientBuilder& builder, const Op& op) {
  const std::optional<TensorId> dy = builder.gradient(op.outputs[0]);
  if (!dy) return;
  const auto& params = op.params_as<ConcatParams>();
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (builder.wants(op.inputs[i])) {
      builder.emit(kConcatBackward,
                   std::make_shared<const ConcatGradientParams>(params.slices[i], offset), {*dy},
                   {builder.target(op.inputs[i])});
    }
    offset += params.slices[i].count;
  }
}

// Copies (adds) `count` channels between two blocked images. Runs that start and end on block
// borders move whole planes; others go lane by lane.
void move_channels(const float* src, const BlockedExtents& from, std::int64_t src_first, float* dst,
                   const BlockedExtents& to, std::int64_t dst_first, std::int64_t count,
                   bool accumulate) {
  const int block = from.block;
  const std::int64_t spatial = from.spatial;
  for (std::int64_t c = 0; c < count;) {
    const std::int64_t sc = src_first + c;
    const std::int64_t dc = dst_first + c;
    const float* in = src + sc / block * from.plane() + sc % block;
    float* out = dst + dc / block * to.plane() + dc % block;
    const std::int64_t run = std::min({block - sc % block, block - dc % block, count - c});
    if (run == block) {
      if (accumulate) {
        for (std::int64_t i = 0; i < spatial * block; ++i) out[i] += in[i];
      } else {
        std::memcpy(out, in, static_cast<std::size_t>(spatial * block) * sizeof(float));
      }
    } else {
      for (std::int64_t i = 0; i < spatial; ++i) {
        for (std::int64_t lane = 0; lane < run; ++lane) {
          float& target = out[i * block + lane];
          target = accumulate ? target + in[i * block + lane] : in[i * block + lane];
        }
      }
    }
    c += run;
  }
}

void zero_padding(float* image, const BlockedExtents& e) {
  const int used = e.lanes_used(e.blocks - 1);
  if (used == e.block) return;
  float* plane = image + (e.blocks - 1) * e.plane();
  for (std::int64_t i = 0; i < e.spatial; ++i) {
    for (int lane = used; lane < e.block; ++lane) plane[i * e.block + lane] = 0.0F;
  }
}

}  // namespace

std::string ConcatParams::describe() const {
  std::string text = "slices=";
  for (const ChannelSlice& slice : slices) text += fmt::format("{}+{},", slice.first, slice.count);
  text.pop_back();
  return text;
}
std::string ConcatGradientParams::describe() const {
  return fmt::format("slice={}+{} from={}", slice.first, slice.count, dst_first);
}

const graph::OpDef kConcatForward{.name = "concat", .infer = infer, .gradient = gradient};
const graph::OpDef kConcatBackward{.name = "concat_backward"};

KernelChoice choose_concat_forward(const Op& op, const SelectContext& context) {
  const Layout layout = context.data_layout(op.inputs[0]);
  const BlockedExtents to(context.shape(op.outputs[0]), layout.block);
  const int threads = context.threads;
  std::vector<BlockedExtents> from;
  for (const TensorId id : op.inputs) from.emplace_back(context.shape(id), layout.block);
  KernelChoice choice{.name = "cpu",
                      .inputs = std::vector<Layout>(op.inputs.size(), layout),
                      .outputs = {layout},
                      .images = to.n};
  choice.kernel = make_kernel([=, slices = op.params_as<ConcatParams>().slices](
                                  std::span<void* const> o, const RunContext& run) {
    const auto sources = static_cast<std::int64_t>(from.size());
    parallel_for(run.images, threads, [&](std::int64_t image) {
      float* out = static_cast<float*>(o[from.size()]) + to.offset(image, 0);
      std::int64_t offset = 0;
      for (std::int64_t k = 0; k < sources; ++k) {
        const auto s = static_cast<std::size_t>(k);
        const float* in = static_cast<const float*>(o[s]) + from[s].offset(image, 0);
        move_channels(in, from[s], slices[s].first, out, to, offset, slices[s].count, false);
        offset += slices[s].count;
      }
      zero_padding(out, to);
    });
  });
  return choice;
}

KernelChoice choose_concat_backward(const Op& op, const SelectContext& context) {
  const auto& params = op.params_as<ConcatGradientParams>();
  const bool accumulate = op.accumulates[0];
  const Layout layout = context.data_layout(accumulate ? op.outputs[0] : op.inputs[0]);
  const BlockedExtents from(context.shape(op.inputs[0]), layout.block);
  const BlockedExtents to(context.shape(op.outputs[0]), layout.block);
  const int threads = context.threads;
  const bool partial = params.slice.count != to.c;
  return {.name = "cpu",
          .inputs = {layout},
          .outputs = {layout},
          .images = to.n,
          .kernel = make_kernel([=, slice = params.slice, dst_first = params.dst_first](
                                    std::span<void* const> o, const RunContext& run) {
            parallel_for(run.images, threads, [&](std::int64_t image) {
              const float* in = static_cast<const float*>(o[0]) + from.offset(image, 0);
              float* out = static_cast<float*>(o[1]) + to.offset(image, 0);
              if (partial && !accumulate) std::fill_n(out, to.blocks * to.plane(), 0.0F);
              move_channels(in, from, dst_first, out, to, slice.first, slice.count, accumulate);
              if (!accumulate) zero_padding(out, to);
            });
          })};
}

}  // namespace lantern::ops
