#include <algorithm>
#include <cstring>

#include "ops/batch_norm/batch_norm_kernels.hpp"
#include "ops/blocks.hpp"
#include "ops/concat/concat.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

using graph::Op;
using graph::TensorId;

namespace {

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

// Writes the parts of a run of images into the concatenation.
class Writer {
 public:
  Writer(const BlockedExtents& to, std::int64_t images, int threads)
      : to_(to), images_(images), threads_(threads) {}

  // `inputs` are the operands of the part, `first` the channel at which it stands.
  void write(const ConcatPart& part, const Shape& source, std::span<void* const> inputs, float* out,
             std::int64_t first) const {
    const auto* in = static_cast<const float*>(inputs[0]);
    if (const auto* slice = std::get_if<ChannelSlice>(&part.source)) {
      copy(*slice, BlockedExtents(source, to_.block), in, out, first);
      return;
    }
    out += first * to_.spatial;  // a channel block begins here
    if (const auto* upsample = std::get_if<UpsampleParams>(&part.source)) {
      upsample_into(*upsample, source, in, out, stride(), to_.block, images_, threads_);
      return;
    }
    const batch_norm::Extents e{.c = source.c(), .spatial = to_.spatial, .block = to_.block};
    const auto floats = [&](std::size_t i) { return static_cast<const float*>(inputs[i]); };
    batch_norm::apply(e, {floats(1), floats(2), floats(3), floats(4)}, {in, e.dense_stride()}, {},
                      {out, stride()}, std::get<BatchNormParams>(part.source).activation, 0,
                      images_, threads_);
  }

 private:
  std::int64_t stride() const { return to_.blocks * to_.plane(); }

  // Jobs end where the blocks of the target do, so that no two write the same cells.
  void copy(const ChannelSlice& slice, const BlockedExtents& from, const float* in, float* out,
            std::int64_t first) const {
    const std::int64_t begin = first / to_.block;
    const std::int64_t blocks = ceil_div(first + slice.count, to_.block) - begin;
    parallel_for(images_ * blocks, threads_, [&](std::int64_t job) {
      const std::int64_t image = job / blocks;
      const std::int64_t block = begin + job % blocks;
      const std::int64_t channel = std::max(first, block * to_.block);
      const std::int64_t count = std::min(first + slice.count, (block + 1) * to_.block) - channel;
      move_channels(in + from.offset(image, 0), from, slice.first + channel - first,
                    out + to_.offset(image, 0), to_, channel, count, false);
    });
  }

  BlockedExtents to_;
  std::int64_t images_;
  int threads_;
};

}  // namespace

KernelChoice choose_concat_forward(const Op& op, const SelectContext& context) {
  const auto& parts = op.params_as<ConcatParams>().parts;
  const Layout layout = context.data_layout(op.inputs[0]);
  const BlockedExtents to(context.shape(op.outputs[0]), layout.block);
  KernelChoice choice{.name = "cpu", .inputs = {}, .outputs = {layout}, .images = to.n};
  std::vector<Shape> sources;
  for (const ConcatPart& part : parts) {
    sources.push_back(context.shape(op.inputs[choice.inputs.size()]));
    choice.inputs.push_back(layout);
    choice.inputs.resize(choice.inputs.size() + part.inputs() - 1);
  }
  choice.kernel =
      make_kernel([=, threads = context.threads](std::span<void* const> o, const RunContext& run) {
        const Writer writer(to, run.images, threads);
        auto* out = static_cast<float*>(o.back());
        std::int64_t first = 0;
        for (std::size_t i = 0; i < parts.size(); ++i) {
          writer.write(parts[i], sources[i], o, out, first);
          o = o.subspan(parts[i].inputs());
          first += parts[i].channels;
        }
        for (std::int64_t image = 0; image < run.images; ++image)
          zero_padding(out + to.offset(image, 0), to);
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
