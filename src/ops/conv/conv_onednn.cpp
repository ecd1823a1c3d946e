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

class ForwardKernel final : public Kernel {
 public:
  ForwardKernel(const ForwardPd& pd, bool bias) : pd_(pd), bias_(bias) {
    call_.make(dnnl::convolution_forward(pd));
  }
  void bind(std::span<void* const> operands) override {
    call_.clear();
    call_.add(DNNL_ARG_SRC, pd_.src_desc(), operands[0]);
    call_.add(DNNL_ARG_WEIGHTS, pd_.weights_desc(), operands[1]);
    if (bias_) call_.add(DNNL_ARG_BIAS, pd_.bias_desc(), operands[2]);
    call_.add(DNNL_ARG_DST, pd_.dst_desc(), operands[bias_ ? 3 : 2]);
    call_.add(DNNL_ARG_SCRATCHPAD, pd_.scratchpad_desc(), operands.back());
  }
  void run(const RunContext& /*context*/) override { call_.execute(); }

 private:
  ForwardPd pd_;
  bool bias_;
  onednn::Call call_;
};

// Images are handled in groups; a group call with a moved pointer gives the same bits as one call
// for all.
class BackwardDataKernel final : public Kernel {
 public:
  struct Piece {
    BackwardDataPd pd;
    std::int64_t first = 0;
    onednn::Call call;
  };

  BackwardDataKernel(std::vector<Piece> pieces, bool accumulate, Bytes dst_image, Bytes src_image,
                     int threads)
      : pieces_(std::move(pieces)),
        accumulate_(accumulate),
        dst_image_(dst_image),
        src_image_(src_image),
        threads_(threads) {
    for (Piece& piece : pieces_) piece.call.make(dnnl::convolution_backward_data(piece.pd));
  }

  // Operands: diff_dst, weights, diff_src, scratchpad[, temporary of one group].
  void bind(std::span<void* const> operands) override {
    diff_src_ = static_cast<std::byte*>(operands[2]);
    temporary_ = accumulate_ ? static_cast<float*>(operands[4]) : nullptr;
    for (Piece& piece : pieces_) {
      piece.call.clear();
      piece.call.add(DNNL_ARG_DIFF_DST, piece.pd.diff_dst_desc(),
                     static_cast<std::byte*>(operands[0]) + piece.first * dst_image_);
      piece.call.add(DNNL_ARG_WEIGHTS, piece.pd.weights_desc(), operands[1]);
      piece.call.add(
          DNNL_ARG_DIFF_SRC, piece.pd.diff_src_desc(),
          accumulate_ ? static_cast<void*>(temporary_) : diff_src_ + piece.first * src_image_);
      piece.call.add(DNNL_ARG_SCRATCHPAD, piece.pd.scratchpad_desc(), operands[3]);
    }
  }

  void run(const RunContext& /*context*/) override {
    for (Piece& piece : pieces_) {
      piece.call.execute();
      if (!accumulate_) continue;
      auto* target = reinterpret_cast<float*>(diff_src_ + piece.first * src_image_);
      const auto count =
          static_cast<std::int64_t>(piece.pd.diff_src_desc().get_size() / sizeof(float));
      parallel_ranges(count, threads_, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) target[i] += temporary_[i];
      });
    }
  }

 private:
  std::vector<Piece> pieces_;
  bool accumulate_;
  Bytes dst_image_, src_image_;
  int threads_;
  std::byte* diff_src_ = nullptr;
  float* temporary_ = nullptr;
};

// dW is summed over image groups in image order; every group but the very first goes through a
// temporary and an add.
class BackwardWeightsKernel final : public Kernel {
 public:
  struct Piece {
    BackwardWeightsPd pd;
    std::int64_t first = 0;
    onednn::Call into_temporary, into_gradient;
  };

  BackwardWeightsKernel(std::vector<Piece> pieces, Bytes src_image, Bytes dst_image, int threads)
      : pieces_(std::move(pieces)),
        src_image_(src_image),
        dst_image_(dst_image),
        threads_(threads) {
    for (Piece& piece : pieces_) {
      piece.into_temporary.make(dnnl::convolution_backward_weights(piece.pd));
      piece.into_gradient.make(dnnl::convolution_backward_weights(piece.pd));
    }
  }

  // Operands: src, diff_dst, diff_weights, scratchpad, temporary.
  void bind(std::span<void* const> operands) override {
    gradient_ = static_cast<float*>(operands[2]);
    temporary_ = static_cast<float*>(operands[4]);
    for (Piece& piece : pieces_) {
      const auto prepare = [&](onednn::Call& call, void* diff_weights) {
        call.clear();
        call.add(DNNL_ARG_SRC, piece.pd.src_desc(),
                 static_cast<std::byte*>(operands[0]) + piece.first * src_image_);
        call.add(DNNL_ARG_DIFF_DST, piece.pd.diff_dst_desc(),
                 static_cast<std::byte*>(operands[1]) + piece.first * dst_image_);
        call.add(DNNL_ARG_DIFF_WEIGHTS, piece.pd.diff_weights_desc(), diff_weights);
        call.add(DNNL_ARG_SCRATCHPAD, piece.pd.scratchpad_desc(), operands[3]);
      };
      prepare(piece.into_temporary, temporary_);
      prepare(piece.into_gradient, gradient_);
    }
    count_ = static_cast<std::int64_t>(pieces_.front().pd.diff_weights_desc().get_size() /
                                       sizeof(float));
  }

  void run(const RunContext& context) override {
    bool first = context.subdivision == 0;
    for (Piece& piece : pieces_) {
      if (first) {
        piece.into_gradient.execute();
        first = false;
        continue;
      }
      piece.into_temporary.execute();
      parallel_ranges(count_, threads_, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) gradient_[i] += temporary_[i];
      });
    }
  }

 private:
  std::vector<Piece> pieces_;
  Bytes src_image_, dst_image_;
  int threads_;
  float* gradient_ = nullptr;
  float* temporary_ = nullptr;
  std::int64_t count_ = 0;
};

Bytes bytes_of(const memory::desc& desc) { return static_cast<Bytes>(desc.get_size()); }

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
      .scratch = {bytes_of(best.pd.scratchpad_desc())},
      .kernel = std::make_unique<ForwardKernel>(best.pd, params.has_bias)};
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
  std::vector<BackwardDataKernel::Piece> pieces;
  Bytes scratch = 0;
  Bytes temporary = 0;
  const std::int64_t group = accumulate ? std::min(image_group(g), g.n) : g.n;
  const BackwardDataPd whole = make(group)(best.src_block, best.dst_block);
  for (std::int64_t first = 0; first < g.n; first += group) {
    const std::int64_t images = std::min(group, g.n - first);
    BackwardDataPd pd = images == group ? whole : make(images)(best.src_block, best.dst_block);
    LANTERN_ASSERT(pd && pd.weights_desc() == best.pd.weights_desc(),
                   "weights layout does not depend on call size");
    scratch = std::max(scratch, bytes_of(pd.scratchpad_desc()));
    temporary = std::max(temporary, bytes_of(pd.diff_src_desc()));
    pieces.push_back({.pd = std::move(pd), .first = first, .call = {}});
  }
  KernelChoice choice{
      .name = std::string("onednn:") + best.pd.impl_info_str(),
      .inputs = {Layout{.block = best.dst_block}, onednn::weights_layout(best.pd.weights_desc())},
      .outputs = {Layout{.block = best.src_block}},
      .scratch = {scratch},
      .kernel = std::make_unique<BackwardDataKernel>(
          std::move(pieces), accumulate, image_bytes(dst_shape(g), best.dst_block),
          image_bytes(src_shape(g), best.src_block), context.threads)};
  if (accumulate) choice.scratch.push_back(temporary);
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
  const std::int64_t group = std::min(image_group(g), g.n);
  auto best = best_of<BackwardWeightsPd>({{current, block}, {block, block}, {1, 1}}, make(group));
  std::vector<BackwardWeightsKernel::Piece> pieces;
  Bytes scratch = 0;
  for (std::int64_t first = 0; first < g.n; first += group) {
    const std::int64_t images = std::min(group, g.n - first);
    BackwardWeightsPd pd = images == group ? best.pd : make(images)(best.src_block, best.dst_block);
    LANTERN_ASSERT(static_cast<bool>(pd), "every image group has an implementation");
    scratch = std::max(scratch, bytes_of(pd.scratchpad_desc()));
    pieces.push_back(
        {.pd = std::move(pd), .first = first, .into_temporary = {}, .into_gradient = {}});
  }
  return {.name = std::string("onednn:") + best.pd.impl_info_str(),
          .inputs = {Layout{.block = best.src_block}, Layout{.block = best.dst_block}},
          .outputs = {onednn::weights_layout(weights)},
          .scratch = {scratch, bytes_of(weights)},
          .image_group = group,
          .kernel = std::make_unique<BackwardWeightsKernel>(
              std::move(pieces), image_bytes(src_shape(g), best.src_block),
              image_bytes(dst_shape(g), best.dst_block), context.threads)};
}

}  // namespace lantern::ops
