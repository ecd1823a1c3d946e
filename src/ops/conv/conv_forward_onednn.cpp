#include "ops/conv/conv_calls.hpp"
#include "ops/conv/grouped.hpp"
#include "ops/conv/winograd.hpp"

namespace lantern::ops {

namespace {

using namespace conv;

using ForwardPd = dnnl::convolution_forward::primitive_desc;

// The library's name of an activation; nothing for those that it computes otherwise or not at all.
struct Eltwise {
  dnnl::algorithm kind;
  float alpha = 0, beta = 0;
};
std::optional<Eltwise> eltwise_of(Activation activation) {
  using dnnl::algorithm;
  switch (activation) {
    case Activation::kLeaky:
    case Activation::kRevleaky:
      return Eltwise{algorithm::eltwise_relu, 0.1F};
    case Activation::kRelie:
      return Eltwise{algorithm::eltwise_relu, 0.01F};
    case Activation::kRelu:
      return Eltwise{algorithm::eltwise_relu};
    case Activation::kRelu6:
      return Eltwise{algorithm::eltwise_clip, 0, 6};
    case Activation::kLogistic:
      return Eltwise{algorithm::eltwise_logistic};
    case Activation::kTanh:
      return Eltwise{algorithm::eltwise_tanh};
    case Activation::kSwish:
      return Eltwise{algorithm::eltwise_swish, 1};
    case Activation::kMish:
      return Eltwise{algorithm::eltwise_mish};
    default:
      return std::nullopt;
  }
}

// The epilogue as operations of the library; nothing when one of them is not among these.
std::optional<dnnl::post_ops> post_ops_of(const Epilogue& epilogue, const memory::desc& dst) {
  dnnl::post_ops ops;
  const auto append = [&](Activation activation) {
    if (activation == Activation::kLinear) return true;
    const std::optional<Eltwise> e = eltwise_of(activation);
    if (e) ops.append_eltwise(1.0F, e->kind, e->alpha, e->beta);
    return e.has_value();
  };
  if (!append(epilogue.activation)) return std::nullopt;
  if (epilogue.residual) ops.append_binary(dnnl::algorithm::binary_add, dst);
  if (!append(epilogue.last)) return std::nullopt;
  return ops;
}

// What the descriptors of one convolution have in common.
struct Forward {
  memory::desc weights;
  bool bias = false;
  Epilogue epilogue;  ///< done by the library
};

// Empty when the library has no implementation.
ForwardPd forward_pd(const ConvGeometry& g, int src_block, int dst_block, const Forward& of) {
  const Window w = window_of(g);
  const memory::desc src = onednn::data_desc(src_shape(g), src_block);
  const memory::desc dst = onednn::data_desc(dst_shape(g), dst_block);
  const memory::desc bias_desc({g.oc}, memory::data_type::f32, memory::format_tag::a);
  const auto desc = of.bias ? dnnl::convolution_forward::desc(
                                  prop_kind::forward_training, kAlgorithm, src, of.weights,
                                  bias_desc, dst, w.strides, w.dilates, w.pad_left, w.pad_right)
                            : dnnl::convolution_forward::desc(
                                  prop_kind::forward_training, kAlgorithm, src, of.weights, dst,
                                  w.strides, w.dilates, w.pad_left, w.pad_right);
  dnnl::primitive_attr attributes = onednn::user_scratchpad();
  const std::optional<dnnl::post_ops> post_ops = post_ops_of(of.epilogue, dst);
  if (!post_ops) return {};
  attributes.set_post_ops(*post_ops);
  return {desc, attributes, onednn::engine(), true};
}

// Place of the added map among the operations behind the sums.
int residual_argument(const Epilogue& epilogue) {
  const int place = epilogue.activation == Activation::kLinear ? 0 : 1;
  return DNNL_ARG_ATTR_MULTIPLE_POST_OP(place) | DNNL_ARG_SRC_1;
}

// How a forward convolution runs: what belongs to it besides its calls.
struct ForwardSetup {
  std::int64_t images = 0;
  bool bias = false;
  SourceSlice source;
  Bytes dst_image = 0;
  bool residual = false;
  /// Done in a pass of its own behind the call.
  Epilogue rest;
  Shape dst;
  int dst_block = 1;
  int threads = 1;
};

// Operands: src, weights[, bias][, residual], dst, scratchpad. Exact per image, whatever the size
// of the call. A slice is read one image at a time: oneDNN runs strided descriptors in its
// reference code.
template <typename Make>
class ForwardKernel final : public Kernel {
 public:
  ForwardKernel(Make make, const ForwardSetup& setup)
      : calls_(std::move(make), setup.source.is_part ? 1 : setup.images), setup_(setup) {}
  void prepare(std::int64_t images) override {
    if (!setup_.source.is_part) calls_.at(images);
  }
  void run(std::span<void* const> o, const RunContext& context) override {
    const std::size_t side = setup_.bias ? 3 : 2;
    const Operands operands{o[0],
                            o[1],
                            setup_.bias ? o[2] : nullptr,
                            setup_.residual ? o[side] : nullptr,
                            o[setup_.residual ? side + 1 : side],
                            o.back()};
    if (!setup_.source.is_part) {
      execute(calls_.at(context.images), operands, context.images);
      return;
    }
    onednn::Call& call = calls_.at(1);
    for (std::int64_t image = 0; image < context.images; ++image) {
      Operands one = operands;
      one.src = bytes_at(o[0], setup_.source.offset + image * setup_.source.image);
      one.dst = bytes_at(operands.dst, image * setup_.dst_image);
      if (setup_.residual) one.residual = bytes_at(operands.residual, image * setup_.dst_image);
      execute(call, one, 1);
    }
  }

 private:
  struct Operands {
    void *src, *weights, *bias, *residual, *dst, *scratch;
  };
  void execute(onednn::Call& call, const Operands& o, std::int64_t images) {
    call.execute({o.src, o.weights, o.bias, o.residual, o.dst, o.scratch});
    apply_epilogue(setup_.rest, setup_.dst, setup_.dst_block, static_cast<const float*>(o.residual),
                   static_cast<float*>(o.dst), images, setup_.threads);
  }

  CallsBySize<Make> calls_;
  ForwardSetup setup_;
};

}  // namespace

KernelChoice choose_conv_forward(const graph::Op& op, const SelectContext& context) {
  if (may_be_own(op, context)) {
    if (auto choice = winograd::choose(op, context)) return std::move(*choice);
    if (auto choice = grouped::choose(op, context)) return std::move(*choice);
  }
  const auto& params = op.params_as<ConvParams>();
  const ConvGeometry& g = params.geometry;
  const std::optional<Layout>& fixed_weights = context.layout(op.inputs[1]);
  Forward of{.weights = fixed_weights && fixed_weights->opaque ? onednn::desc_of(*fixed_weights)
                                                               : any_weights(g),
             .bias = params.has_bias,
             .epilogue = params.epilogue};
  const int current = context.data_layout(op.inputs[0]).block;
  const int block = context.block;
  const auto find = [&] {
    return best_of<ForwardPd>(
        {{current, block}, {block, block}, {1, 1}},
        [&](int src_block, int dst_block) { return forward_pd(g, src_block, dst_block, of); });
  };
  std::optional<Candidate<ForwardPd>> best = find();
  Epilogue rest;
  if (!params.epilogue.is_empty() &&
      (!best || onednn::implementation_rank(best->pd.impl_info_str()) > 0)) {
    rest = params.epilogue;
    of.epilogue = {};
    best = find();
  }
  LANTERN_ASSERT(best.has_value(), "oneDNN has an implementation for every convolution");
  const Layout data{.block = best->dst_block};
  KernelChoice choice{
      .name = std::string("onednn:") + best->pd.impl_info_str(),
      .inputs = {Layout{.block = best->src_block}, onednn::weights_layout(best->pd.weights_desc())},
      .outputs = {data},
      .scratch = {bytes_of(best->pd.scratchpad_desc())},
      .groups = g.groups};
  of.weights = best->pd.weights_desc();
  const auto make = [g, of, src = best->src_block, dst = best->dst_block,
                     scratch = choice.scratch[0]](std::int64_t images) {
    const ForwardPd pd = forward_pd(with_images(g, images), src, dst, of);
    require_scratch(pd, scratch);
    const memory::desc none;
    return onednn::Call(
        dnnl::convolution_forward(pd),
        {{DNNL_ARG_SRC, pd.src_desc()},
         {DNNL_ARG_WEIGHTS, pd.weights_desc()},
         {DNNL_ARG_BIAS, of.bias ? pd.bias_desc() : none},
         {residual_argument(of.epilogue), of.epilogue.residual ? pd.dst_desc() : none},
         {DNNL_ARG_DST, pd.dst_desc()},
         {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
  };
  choice.kernel = kernel_of<ForwardKernel>(
      make, ForwardSetup{.images = g.n,
                         .bias = params.has_bias,
                         .source = SourceSlice(context.shape(op.inputs[0]), g, params.source_first,
                                               best->src_block),
                         .dst_image = image_bytes(dst_shape(g), best->dst_block),
                         .residual = params.epilogue.residual,
                         .rest = rest,
                         .dst = dst_shape(g),
                         .dst_block = best->dst_block,
                         .threads = context.threads});
  run_ranges(choice, best->pd.impl_info_str(), g.n);
  if (params.has_bias) choice.inputs.emplace_back();
  if (params.epilogue.residual) choice.inputs.push_back(data);
  return choice;
}

}  // namespace lantern::ops
