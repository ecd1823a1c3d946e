#include "ops/conv/conv_onednn.hpp"

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "ops/conv/conv.hpp"
#include "ops/onednn.hpp"
#include "ops/parallel.hpp"

namespace lantern::ops {

namespace {

using dnnl::memory;
using dnnl::prop_kind;

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

memory::dims weight_dims(const ConvGeometry& g) {
  if (g.groups == 1) return {g.oc, g.ic, g.kh, g.kw};
  return {g.groups, g.oc / g.groups, g.ic / g.groups, g.kh, g.kw};
}

memory::desc any_weights(const ConvGeometry& g) {
  return {weight_dims(g), memory::data_type::f32, memory::format_tag::any};
}

struct Window {
  memory::dims strides, dilates, pad_left, pad_right;
};

// The output size is given, so bottom and right padding are what is left over (may be negative:
// unread rows).
Window window_of(const ConvGeometry& g) {
  const std::int64_t reach_h = (g.kh - 1) * g.dh + 1;
  const std::int64_t reach_w = (g.kw - 1) * g.dw + 1;
  return {{g.sh, g.sw},
          {g.dh - 1, g.dw - 1},
          {g.ph, g.pw},
          {(g.oh - 1) * g.sh + reach_h - g.ih - g.ph, (g.ow - 1) * g.sw + reach_w - g.iw - g.pw}};
}

ConvGeometry with_images(ConvGeometry g, std::int64_t images) {
  g.n = images;
  return g;
}

Shape src_shape(const ConvGeometry& g) { return {g.n, g.ic, g.ih, g.iw}; }
Shape dst_shape(const ConvGeometry& g) { return {g.n, g.oc, g.oh, g.ow}; }

Bytes image_bytes(const Shape& shape, int block) {
  return Layout{.block = block}.bytes(Shape{1, shape.c(), shape.h(), shape.w()}, DType::kF32);
}

using ForwardPd = dnnl::convolution_forward::primitive_desc;
using BackwardDataPd = dnnl::convolution_backward_data::primitive_desc;
using BackwardWeightsPd = dnnl::convolution_backward_weights::primitive_desc;

ForwardPd forward_pd(const ConvGeometry& g, int src_block, int dst_block,
                     const memory::desc& weights, bool bias) {
  const Window w = window_of(g);
  const memory::desc src = onednn::data_desc(src_shape(g), src_block);
  const memory::desc dst = onednn::data_desc(dst_shape(g), dst_block);
  const memory::desc bias_desc({g.oc}, memory::data_type::f32, memory::format_tag::a);
  const auto desc =
      bias ? dnnl::convolution_forward::desc(prop_kind::forward_training, kAlgorithm, src, weights,
                                             bias_desc, dst, w.strides, w.dilates, w.pad_left,
                                             w.pad_right)
           : dnnl::convolution_forward::desc(prop_kind::forward_training, kAlgorithm, src, weights,
                                             dst, w.strides, w.dilates, w.pad_left, w.pad_right);
  return {desc, onednn::user_scratchpad(), onednn::engine(), true};
}

// The backward descriptors want a forward hint; any forward of the same geometry will do.
ForwardPd hint_pd(const ConvGeometry& g) { return forward_pd(g, 1, 1, any_weights(g), false); }

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

/// A descriptor with the data blocks it was made for.
template <typename Pd>
struct Candidate {
  Pd pd;
  int src_block = 1;
  int dst_block = 1;
};

// The first candidate with the best rank (jit before gemm before ref); `make` returns an empty
// descriptor when oneDNN has no implementation.
template <typename Pd, typename Make>
Candidate<Pd> best_of(std::initializer_list<std::pair<int, int>> blocks, const Make& make) {
  std::optional<Candidate<Pd>> best;
  int best_rank = 3;
  for (const auto& [src_block, dst_block] : blocks) {
    Pd pd = make(src_block, dst_block);
    if (!pd) continue;
    const int rank = onednn::implementation_rank(pd.impl_info_str());
    if (rank < best_rank) {
      best = Candidate<Pd>{std::move(pd), src_block, dst_block};
      best_rank = rank;
    }
    if (best_rank == 0) break;
  }
  LANTERN_ASSERT(best.has_value(), "oneDNN has an implementation for every convolution");
  return std::move(*best);
}

// Calls of one convolution, made for every number of images that runs have asked for.
template <typename Make>
class CallsBySize {
 public:
  CallsBySize(Make make, std::int64_t expected) : make_(std::move(make)) { at(expected); }
  onednn::Call& at(std::int64_t images) {
    for (auto& [size, call] : calls_) {
      if (size == images) return *call;
    }
    calls_.emplace_back(images, std::make_unique<onednn::Call>(make_(images)));
    return *calls_.back().second;
  }

 private:
  Make make_;
  std::vector<std::pair<std::int64_t, std::unique_ptr<onednn::Call>>> calls_;
};

std::byte* bytes_at(void* operand, Bytes offset) {
  return static_cast<std::byte*>(operand) + offset;
}

// Where the source channels of a convolution stand in a tensor that may have more of them.
struct SourceSlice {
  Bytes offset = 0;  // of the first channel inside an image
  Bytes image = 0;   // from an image to the next
  bool is_part = false;

  SourceSlice(const Shape& tensor, const ConvGeometry& g, std::int64_t first, int block)
      : offset(first * g.ih * g.iw * Bytes{sizeof(float)}),
        image(image_bytes(tensor, block)),
        is_part(tensor.c() != g.ic) {}
};

// Operands: src, weights[, bias], dst, scratchpad. Exact per image, whatever the size of the call.
// A slice is read one image at a time: oneDNN runs strided descriptors in its reference code.
template <typename Make>
class ForwardKernel final : public Kernel {
 public:
  ForwardKernel(Make make, std::int64_t images, bool bias, SourceSlice source, Bytes dst_image)
      : calls_(std::move(make), source.is_part ? 1 : images),
        bias_(bias),
        source_(source),
        dst_image_(dst_image) {}
  void prepare(std::int64_t images) override {
    if (!source_.is_part) calls_.at(images);
  }
  void run(std::span<void* const> o, const RunContext& context) override {
    if (!source_.is_part) {
      execute(calls_.at(context.images), o, o[0], o[bias_ ? 3 : 2]);
      return;
    }
    onednn::Call& call = calls_.at(1);
    for (std::int64_t image = 0; image < context.images; ++image) {
      execute(call, o, bytes_at(o[0], source_.offset + image * source_.image),
              bytes_at(o[bias_ ? 3 : 2], image * dst_image_));
    }
  }

 private:
  void execute(onednn::Call& call, std::span<void* const> o, void* src, void* dst) {
    if (bias_) {
      call.execute({src, o[1], o[2], dst, o[4]});
    } else {
      call.execute({src, o[1], dst, o[3]});
    }
  }

  CallsBySize<Make> calls_;
  bool bias_;
  SourceSlice source_;
  Bytes dst_image_;
};

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

template <template <typename> typename KernelOf, typename Make, typename... Arguments>
std::unique_ptr<Kernel> kernel_of(Make make, Arguments... arguments) {
  return std::make_unique<KernelOf<Make>>(std::move(make), arguments...);
}

Bytes bytes_of(const memory::desc& desc) { return static_cast<Bytes>(desc.get_size()); }

// The plan has room for what a call of all images (or of a whole group) needs; smaller ones need
// less.
template <typename Pd>
void require_scratch(const Pd& pd, Bytes planned) {
  LANTERN_ASSERT(bytes_of(pd.scratchpad_desc()) <= planned,
                 "a call of fewer images needs no more scratch memory");
}

// Only the direct convolutions give an image the same bits in a call of any size; the others run
// whole.
void run_ranges(KernelChoice& choice, const std::string& implementation, std::int64_t images) {
  if (onednn::implementation_rank(implementation) == 1) {
    choice.kernel = std::make_unique<WholeKernel>(std::move(choice.kernel), images);
  } else {
    choice.images = images;
  }
}

}  // namespace

KernelChoice choose_conv_forward(const graph::Op& op, const SelectContext& context) {
  const auto& params = op.params_as<ConvParams>();
  const ConvGeometry& g = params.geometry;
  const std::optional<Layout>& fixed_weights = context.layout(op.inputs[1]);
  const memory::desc weights =
      fixed_weights && fixed_weights->opaque ? onednn::desc_of(*fixed_weights) : any_weights(g);
  const int current = context.data_layout(op.inputs[0]).block;
  const int block = context.block;
  auto best = best_of<ForwardPd>(
      {{current, block}, {block, block}, {1, 1}}, [&](int src_block, int dst_block) {
        return forward_pd(g, src_block, dst_block, weights, params.has_bias);
      });
  KernelChoice choice{
      .name = std::string("onednn:") + best.pd.impl_info_str(),
      .inputs = {Layout{.block = best.src_block}, onednn::weights_layout(best.pd.weights_desc())},
      .outputs = {Layout{.block = best.dst_block}},
      .scratch = {bytes_of(best.pd.scratchpad_desc())}};
  const auto make = [g, src = best.src_block, dst = best.dst_block, bias = params.has_bias,
                     weights = best.pd.weights_desc(),
                     scratch = choice.scratch[0]](std::int64_t images) {
    const ForwardPd pd = forward_pd(with_images(g, images), src, dst, weights, bias);
    require_scratch(pd, scratch);
    const auto call = dnnl::convolution_forward(pd);
    return bias ? onednn::Call(call, {{DNNL_ARG_SRC, pd.src_desc()},
                                      {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                                      {DNNL_ARG_BIAS, pd.bias_desc()},
                                      {DNNL_ARG_DST, pd.dst_desc()},
                                      {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}})
                : onednn::Call(call, {{DNNL_ARG_SRC, pd.src_desc()},
                                      {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                                      {DNNL_ARG_DST, pd.dst_desc()},
                                      {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
  };
  choice.kernel = kernel_of<ForwardKernel>(
      make, g.n, params.has_bias,
      SourceSlice(context.shape(op.inputs[0]), g, params.source_first, best.src_block),
      image_bytes(dst_shape(g), best.dst_block));
  run_ranges(choice, best.pd.impl_info_str(), g.n);
  if (params.has_bias) choice.inputs.emplace_back();
  return choice;
}

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
  // What is added to goes through a temporary of one image group.
  const std::int64_t group = accumulate ? std::min(image_group(g), g.n) : 0;
  const BackwardDataPd call_pd = make(accumulate ? group : g.n)(best.src_block, best.dst_block);
  LANTERN_ASSERT(call_pd && call_pd.weights_desc() == best.pd.weights_desc(),
                 "weights layout does not depend on call size");
  KernelChoice choice{
      .name = std::string("onednn:") + best.pd.impl_info_str(),
      .inputs = {Layout{.block = best.dst_block}, onednn::weights_layout(best.pd.weights_desc())},
      .outputs = {Layout{.block = best.src_block}},
      .scratch = {bytes_of(call_pd.scratchpad_desc())}};
  if (accumulate) choice.scratch.push_back(bytes_of(call_pd.diff_src_desc()));
  const auto make_call = [g, src_block = best.src_block, dst_block = best.dst_block,
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
      make_call, g.n, group, image_bytes(dst_shape(g), best.dst_block),
      image_bytes(src_shape(g), best.src_block), context.threads);
  run_ranges(choice, best.pd.impl_info_str(), g.n);
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
  Bytes scratch = bytes_of(best.pd.scratchpad_desc());
  if (g.n % group != 0) {
    const BackwardWeightsPd rest = make(g.n % group)(best.src_block, best.dst_block);
    scratch = std::max(scratch, rest ? bytes_of(rest.scratchpad_desc()) : 0);
  }
  const auto make_call = [g, weights = weights, src_block = best.src_block,
                          dst_block = best.dst_block, scratch](std::int64_t images) {
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
  return {.name = std::string("onednn:") + best.pd.impl_info_str(),
          .inputs = {Layout{.block = best.src_block}, Layout{.block = best.dst_block}},
          .outputs = {onednn::weights_layout(weights)},
          .scratch = {scratch, bytes_of(weights)},
          .image_group = group,
          .images = g.n,
          .kernel = kernel_of<BackwardWeightsKernel>(
              make_call, group, SourceSlice(source, g, params.source_first, best.src_block),
              image_bytes(dst_shape(g), best.dst_block),
              static_cast<std::int64_t>(bytes_of(weights)) / std::int64_t{sizeof(float)},
              context.threads)};
}

}  // namespace lantern::ops
