#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using K = cfg::Key<ConvolutionalSpec>;
using S = ConvolutionalSpec;

constexpr std::array kKeys{
    K{.name = "filters",
      .field = &S::filters,
      .otherwise = 1,
      .min = 1,
      .max = kMaxFilters,
      .doc = "Output channels."},
    K{.name = "groups",
      .field = &S::groups,
      .otherwise = 1,
      .doc = "Grouped convolution; divides the channels of input and output. Below 1: 1."},
    K{.name = "size",
      .field = &S::size,
      .otherwise = 1,
      .min = 1,
      .max = kMaxKernel,
      .unit = "px",
      .doc = "Side of the square kernel."},
    K{.name = "stride",
      .field = &S::stride,
      .otherwise = 1,
      .min = 1,
      .max = kMaxStride,
      .unit = "px",
      .doc = "Step of the kernel on both axes."},
    K{.name = "stride_x",
      .field = &S::stride_x,
      .otherwise = -1,
      .max = kMaxStride,
      .unit = "px",
      .doc = "Horizontal step; below 1: stride."},
    K{.name = "stride_y",
      .field = &S::stride_y,
      .otherwise = -1,
      .max = kMaxStride,
      .unit = "px",
      .doc = "Vertical step; below 1: stride."},
    K{.name = "dilation",
      .field = &S::dilation,
      .otherwise = 1,
      .min = 1,
      .max = kMaxKernel,
      .doc = "Distance between kernel taps; 1 when size=1."},
    K{.name = "pad", .field = &S::pad, .doc = "Not 0: padding = size / 2."},
    K{.name = "padding",
      .field = &S::padding,
      .min = 0,
      .max = kMaxKernel,
      .unit = "px",
      .doc = "Cells added on each side when pad=0; multiplied by dilation."},
    activation_key<S>("logistic"),
    K{.name = "batch_normalize",
      .field = &S::batch_normalize,
      .min = 0,
      .max = 2,
      .doc = "1: batch normalisation; 2: over the mini-batches of an iteration (CBN)."},
    K{.name = "cbn", .field = &S::cbn, .doc = "Not 0: batch_normalize=2."},
    K{.name = "antialiasing",
      .field = &S::antialiasing,
      .min = 0,
      .max = 2,
      .doc = "Stride 1, then a fixed blur with the stride: 1: 3x3 binomial, 2: 2x2 box."},
    K{.name = "share_index",
      .field = &S::share_index,
      .doc = "Uses the parameters of that earlier convolution; negative: relative to this layer."},
    K{.name = "binary", .field = &S::binary, .doc = "1: binary weights."},
    K{.name = "xnor", .field = &S::xnor, .doc = "1: binary weights and inputs; forces groups=1."},
    K{.name = "bin_output",
      .field = &S::bin_output,
      .doc = "1: output stays un-activated for a following xnor layer."},
    K{.name = "assisted_excitation",
      .field = &S::assisted_excitation,
      .min = 0,
      .doc = "Training: raise activations inside the true boxes, until half of the run (1) or this "
             "iteration.",
      .truncates = true},
    K{.name = "sway",
      .field = &S::sway,
      .doc = "1: tie quarters of the filters by rotation of +-angle and mirroring."},
    K{.name = "rotate",
      .field = &S::rotate,
      .doc = "1: tie quarters of the filters by 0, 90, 180, 270 degrees."},
    K{.name = "stretch",
      .field = &S::stretch,
      .doc = "1: tie quarters of the filters by scales 1, 0.65, 0.8, 1.3."},
    K{.name = "stretch_sway",
      .field = &S::stretch_sway,
      .doc = "1: tie eighths of the filters by scale and angle."},
    K{.name = "angle",
      .field = &S::angle,
      .otherwise = 15,
      .unit = "degrees",
      .doc = "For sway and stretch_sway."},
    K{.name = "grad_centr",
      .field = &S::grad_centr,
      .doc = "1: subtract the mean of each filter's gradient."},
    K{.name = "reverse",
      .field = &S::reverse,
      .doc = "Experimental: exponent applied to the update; 0: off."},
    K{.name = "coordconv",
      .field = &S::coordconv,
      .doc = "Experimental: output channels 0..2 become x, y and radius."},
    K{.name = "flipped",
      .field = &S::flipped,
      .doc = "1: the weights file holds the matrix transposed."},
    K{.name = "dot", .field = &S::dot, .doc = "Accepted; has no effect."},
    K{.name = "stream",
      .field = &S::stream,
      .otherwise = -1,
      .doc = "Accepted; the planner orders layers itself."},
    K{.name = "wait_stream",
      .field = &S::wait_stream,
      .otherwise = -1,
      .doc = "Accepted; the planner orders layers itself."},
};

void finish(S& s, cfg::SectionReader& reader) {
  if (s.stride_x < 1) s.stride_x = s.stride;
  if (s.stride_y < 1) s.stride_y = s.stride;
  if (s.pad != 0) s.padding = s.size / 2;
  if (s.groups < 1 || s.xnor != 0) s.groups = 1;
  if (s.size == 1) s.dilation = 1;
  if (s.cbn != 0) s.batch_normalize = 2;
  const int deformed = (s.sway != 0) + (s.rotate != 0) + (s.stretch != 0) + (s.stretch_sway != 0);
  if (deformed > 1) {
    reader.diagnostics().error(
        reader.where(),
        "[convolutional] sway, rotate, stretch and stretch_sway exclude each "
        "other, {} are set",
        deformed);
  }
  if (deformed > 0 && s.size == 1) {
    reader.diagnostics().error(
        reader.where("size"),
        "[convolutional] sway, rotate, stretch and stretch_sway need size > 1");
  }
}

void references(const Spec& spec, std::vector<Reference>& out) {
  const auto& s = std::get<S>(spec);
  if (s.share_index) out.push_back({"share_index", *s.share_index});
}

ConvShape conv_shape(const S& s, std::int64_t channels) {
  // With antialiasing the convolution itself has stride 1; the blur carries the stride.
  const bool blurs = s.antialiasing != 0;
  return {.filters = s.filters,
          .channels = channels,
          .groups = s.groups,
          .size = s.size,
          .stride_x = blurs ? 1 : s.stride_x,
          .stride_y = blurs ? 1 : s.stride_y,
          .padding = s.padding,
          .dilation = s.dilation};
}

bool check_shared(ShapeContext& context, const Layer& layer, const ConvShape& shape) {
  const Layer& source = context.layer(layer.sources.front());
  const auto* other = std::get_if<S>(&source.spec);
  if (other == nullptr) {
    context.error(layer, "share_index",
                  "share_index means layer {} ({}), which is a [{}]; want a [convolutional]",
                  source.index, source.where, source.section);
    return false;
  }
  if ((other->batch_normalize != 0) != (std::get<S>(layer.spec).batch_normalize != 0)) {
    context.error(layer, "share_index",
                  "shares the parameters of layer {} ({}), where batch_normalize is {}; here it is "
                  "{}; they must be equal",
                  source.index, source.where, other->batch_normalize,
                  std::get<S>(layer.spec).batch_normalize);
    return false;
  }
  const ConvShape theirs = conv_shape(*other, source.in.c);
  if (theirs.size == shape.size && theirs.filters == shape.filters &&
      theirs.channels == shape.channels && theirs.weights() == shape.weights()) {
    return true;
  }
  context.error(layer, "share_index",
                "shares the weights of layer {} ({}), which has size={} filters={} input "
                "channels={} groups={}; here "
                "it is size={} filters={} input channels={} groups={}; they must be equal",
                source.index, source.where, theirs.size, theirs.filters, theirs.channels,
                theirs.groups, shape.size, shape.filters, shape.channels, shape.groups);
  return false;
}

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  const ConvShape conv = conv_shape(s, layer.in.c);
  if (!conv.check(context, layer, layer.in)) return;
  if (s.share_index && !check_shared(context, layer, conv)) return;
  const Dims plain{conv.out_w(layer.in.w), conv.out_h(layer.in.h), s.filters};
  layer.bflops = conv.bflops(plain, s.xnor != 0);
  layer.out = plain;
  if (s.antialiasing == 0) return;
  layer.out = blurred(plain, s.antialiasing, s.stride_x, s.stride_y);
  if (layer.out.w < 1 || layer.out.h < 1) {
    context.error(layer, "antialiasing", "a map of {} is too small for the blur", to_string(plain));
    layer.out = {};
  }
}

std::vector<ParameterArray> parameters(const Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  std::vector<ParameterArray> arrays;
  if (s.share_index) return arrays;
  append_conv_arrays(arrays, "", s.filters, conv_shape(s, layer.in.c).weights(),
                     s.batch_normalize != 0);
  return arrays;
}

constexpr std::string_view kAliases[] = {"conv"};

}  // namespace

extern const LayerDef kConvolutional;
const LayerDef kConvolutional{.name = "convolutional",
                              .aliases = kAliases,
                              .doc = "Convolution, batch normalisation or bias, activation.",
                              .keys = keys_of<S, kKeys>,
                              .read = read_as<S, kKeys, finish>,
                              .references = references,
                              .shape = shape,
                              .parameters = parameters};

}  // namespace lantern::layers
