#include "ops/conv/conv_calls.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

namespace {

using namespace conv;

using ForwardPd = dnnl::convolution_forward::primitive_desc;
using BackwardDataPd = dnnl::convolution_backward_data::primitive_desc;
using BackwardWeightsPd = dnnl::convolution_backward_weights::primitive_desc;

// The backward descriptors want a forward hint; any forward of the same geometry will do.
ForwardPd hint_pd(const ConvGeometry& g) {
  const Window w = window_of(g);
  return {dnnl::convolution_forward::desc(prop_kind::forward_training, kAlgorithm,
                                          onednn::data_desc(src_shape(g), 1), any_weights(g),
                                          onednn::data_desc(dst_shape(g), 1), w.strides, w.dilates,
                                          w.pad_left, w.pad_right),
          onednn::engine(), true};
}

BackwardDataPd backward_data_pd(const ConvGeometry& g, int src_block, int dst_block) {
  const Window w = window_of(g);
  const dnnl::convolution_backward_data::desc desc(
      kAlgorithm, onednn::data_desc(src_shape(g), src_block), any_weights(g),
      onednn::data_desc(dst_shape(g), dst_block), w.strides, w.dilates, w.pad_left, w.pad_right);
  return {desc, onednn::user_scratchpad(), onednn::engine(), hint_pd(g), true};
}

BackwardWeightsPd backward_weights_pd(const ConvGeometry& g, int src_block, int dst_block,
                                      const memory::desc& weights) {
  const Window w = window_of(g);
  const dnnl::convolution_backward_weights::desc desc(
      kAlgorithm, onednn::data_desc(src_shape(g), src_block), weights,
      onednn::data_desc(dst_shape(g), dst_block), w.strides, w.dilates, w.pad_left, w.pad_right);
  return {desc, onednn::user_scratchpad(), onednn::engine(), hint_pd(g), true};
}

// Operands: diff_dst, weights, diff_src, scratchpad[, temporary of one group]. Exact per image. A
// second contribution runs per image group into the temporary and is added at once.
template <typename Make>
class BackwardDataKernel final : public Kernel {
 public:
  BackwardDataKernel(Make make, std::int64_t images, std::int64_t group, Bytes dst_image,
                     Bytes src_image, int threads)
      : calls_(std::move(make), group > 0 ? group : images),
        group_(group),
        dst_image_(dst_image),
        src_image_(src_image),
        threads_(threads) {}

  void prepare(std::int64_t images) override {
    if (group_ == 0 || images < group_) calls_.at(images);
    if (group_ != 0 && images % group_ != 0) calls_.at(images % group_);
  }

  void run(std::span<void* const> o, const RunContext& context) override {
    if (group_ == 0) {
      calls_.at(context.images).execute({o[0], o[1], o[2], o[3]});
      return;
    }
    auto* temporary = static_cast<float*>(o[4]);
    for (std::int64_t first = 0; first < context.images; first += group_) {
      const std::int64_t images = std::min(group_, context.images - first);
      calls_.at(images).execute({bytes_at(o[0], first * dst_image_), o[1], temporary, o[3]});
      auto* target = reinterpret_cast<float*>(bytes_at(o[2], first * src_image_));
      const auto count = static_cast<std::int64_t>(images * src_image_ / Bytes{sizeof(float)});
      parallel_ranges(count, threads_, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) target[i] += temporary[i];
      });
    }
  }

 private:
  CallsBySize<Make> calls_;
  std::int64_t group_;  // 0: writes
  Bytes dst_image_, src_image_;
  int threads_;
};

// Operands: src, diff_dst, diff_weights, scratchpad, temporary. dW is summed over image groups in
// image order; every group but the very first of an iteration goes through the temporary and an
// add.
template <typename Make>
class BackwardWeightsKernel final : public Kernel {
 public:
  BackwardWeightsKernel(Make make, std::int64_t group, SourceSlice source, Bytes dst_image,
                        std::int64_t weights, int threads)
      : calls_(std::move(make), group),
        group_(group),
        source_(source),
        dst_image_(dst_image),
        weights_(weights),
        threads_(threads) {}

  void prepare(std::int64_t images) override {
    if (images % group_ != 0) calls_.at(images % group_);
  }

  void run(std::span<void* const> o, const RunContext& context) override {
    auto* gradient = static_cast<float*>(o[2]);
    auto* temporary = static_cast<float*>(o[4]);
    for (std::int64_t first = 0; first < context.images; first += group_) {
      const bool writes = context.subdivision == 0 && context.first_image + first == 0;
      calls_.at(std::min(group_, context.images - first))
          .execute({bytes_at(o[0], source_.offset + first * source_.image),
                    bytes_at(o[1], first * dst_image_), writes ? gradient : temporary, o[3]});
      if (writes) continue;
      parallel_ranges(weights_, threads_, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) gradient[i] += temporary[i];
      });
    }
  }

 private:
  CallsBySize<Make> calls_;
  std::int64_t group_;
  SourceSlice source_;
  Bytes dst_image_;
  std::int64_t weights_;  // floats
  int threads_;
};

}  // namespace

KernelChoice choose_conv_backward_data(const graph::Op& op, const SelectContext& context) {
  const ConvGeometry& g = op.params_as<ConvGradientParams>().geometry;
  const bool accumulate = op.accumulates[0];
  const int block = context.block;
  const int src = accumulate ? context.data_layout(op.outputs[0]).block : block;
  const auto make = [&](std::int64_t images) {
    return [&g, images](int src_block, int dst_block) {
      return backward_data_pd(with_images(g, images), src_block, dst_block);
    };
  };
  auto best = best_of<BackwardDataPd>({{src, block}, {accumulate ? src : 1, 1}}, make(g.n));
  LANTERN_ASSERT(best.has_value(), "oneDNN has an implementation for every convolution");
  // What is added to goes through a temporary of one image group.
  const std::int64_t group = accumulate ? std::min(image_group(g), g.n) : 0;
  const BackwardDataPd call_pd = make(accumulate ? group : g.n)(best->src_block, best->dst_block);
  LANTERN_ASSERT(call_pd && call_pd.weights_desc() == best->pd.weights_desc(),
                 "weights layout does not depend on call size");
  KernelChoice choice{
      .name = std::string("onednn:") + best->pd.impl_info_str(),
      .inputs = {Layout{.block = best->dst_block}, onednn::weights_layout(best->pd.weights_desc())},
      .outputs = {Layout{.block = best->src_block}},
      .scratch = {bytes_of(call_pd.scratchpad_desc())},
      .groups = g.groups};
  if (accumulate) choice.scratch.push_back(bytes_of(call_pd.diff_src_desc()));
  const auto make_call = [g, src_block = best->src_block, dst_block = best->dst_block,
                          scratch = choice.scratch[0]](std::int64_t images) {
    const BackwardDataPd pd = backward_data_pd(with_images(g, images), src_block, dst_block);
    require_scratch(pd, scratch);
    return onednn::Call(dnnl::convolution_backward_data(pd),
                        {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                         {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                         {DNNL_ARG_DIFF_SRC, pd.diff_src_desc()},
                         {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
  };
  choice.kernel = kernel_of<BackwardDataKernel>(
      make_call, g.n, group, image_bytes(dst_shape(g), best->dst_block),
      image_bytes(src_shape(g), best->src_block), context.threads);
  run_ranges(choice, best->pd.impl_info_str(), g.n);
  return choice;
}

KernelChoice choose_conv_backward_weights(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<ConvGradientParams>();
  const ConvGeometry& g = params.geometry;
  const memory::desc& weights = onednn::desc_of(*context.layout(params.weights));
  const int current = context.data_layout(op.inputs[0]).block;
  const int block = context.block;
  const auto make = [&](std::int64_t images) {
    return [&g, &weights, images](int src_block, int dst_block) {
      return backward_weights_pd(with_images(g, images), src_block, dst_block, weights);
    };
  };
  const Shape& source = context.shape(op.inputs[0]);
  const bool is_slice = source.c() != g.ic;
  const std::int64_t group = is_slice ? 1 : std::min(image_group(g), g.n);
  auto best = best_of<BackwardWeightsPd>({{current, block}, {block, block}, {1, 1}}, make(group));
  LANTERN_ASSERT(best.has_value(), "oneDNN has an implementation for every convolution");
  Bytes scratch = bytes_of(best->pd.scratchpad_desc());
  if (g.n % group != 0) {
    const BackwardWeightsPd rest = make(g.n % group)(best->src_block, best->dst_block);
    scratch = std::max(scratch, rest ? bytes_of(rest.scratchpad_desc()) : 0);
  }
  const auto make_call = [g, weights = weights, src_block = best->src_block,
                          dst_block = best->dst_block, scratch](std::int64_t images) {
    const BackwardWeightsPd pd =
        backward_weights_pd(with_images(g, images), src_block, dst_block, weights);
    LANTERN_ASSERT(static_cast<bool>(pd), "every image group has an implementation");
    require_scratch(pd, scratch);
    return onednn::Call(dnnl::convolution_backward_weights(pd),
                        {{DNNL_ARG_SRC, pd.src_desc()},
                         {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                         {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()},
                         {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
  };
  return {.name = std::string("onednn:") + best->pd.impl_info_str(),
          .inputs = {Layout{.block = best->src_block}, Layout{.block = best->dst_block}},
          .outputs = {onednn::weights_layout(weights)},
          .scratch = {scratch, bytes_of(weights)},
          .image_group = group,
          .images = g.n,
          .groups = g.groups,
          .kernel = kernel_of<BackwardWeightsKernel>(
              make_call, group, SourceSlice(source, g, params.source_first, best->src_block),
              image_bytes(dst_shape(g), best->dst_block),
              static_cast<std::int64_t>(bytes_of(weights)) / std::int64_t{sizeof(float)},
              context.threads)};
}

}  // namespace lantern::ops
