#include "layers/lower_context.hpp"
#include "ops/broadcast/broadcast.hpp"
#include "ops/crop/crop.hpp"
#include "ops/local/local.hpp"
#include "ops/lrn/lrn.hpp"

// Sections that are one op each.
namespace lantern::layers {

using graph::TensorId;

void lower_crop(LowerContext& context, const Layer& layer, const CropSpec& spec) {
  const bool colours = spec.saturation != 1 || spec.exposure != 1 || spec.shift != 0;
  if (colours && layer.in.c != 3) {
    refuse(layer,
           "saturation, exposure and shift change colours, but the input has {} channels; remove "
           "the keys",
           layer.in.c);
  }
  if (spec.saturation <= 0 || spec.exposure <= 0) {
    refuse(layer, "saturation={} and exposure={} are factors; want more than 0", spec.saturation,
           spec.exposure);
  }
  auto params = std::make_shared<ops::CropParams>();
  params->height = layer.out.h;
  params->width = layer.out.w;
  params->training = context.training();
  params->layer = layer.index;
  params->flip = spec.flip != 0;
  params->angle = spec.angle;
  params->saturation = spec.saturation;
  params->exposure = spec.exposure;
  params->shift = spec.shift;
  params->adjust = spec.noadjust == 0;
  context.set_output(layer.index, context.add(ops::kCrop, std::move(params),
                                              {context.previous(layer)}, layer, "crop")[0]);
}

void lower_normalization(LowerContext& context, const Layer& layer, const NormalizationSpec& spec) {
  const ops::ref::LrnSettings settings{
      .alpha = spec.alpha, .beta = spec.beta, .kappa = spec.kappa, .size = spec.size};
  context.set_output(layer.index,
                     context.add(ops::kLrnForward, std::make_shared<const ops::LrnParams>(settings),
                                 {context.previous(layer)}, layer, "lrn")[0]);
}

void lower_local(LowerContext& context, const Layer& layer, const LocalSpec& spec) {
  const ops::LocalGeometry g{.n = context.images(),
                             .c = layer.in.c,
                             .ih = layer.in.h,
                             .iw = layer.in.w,
                             .filters = layer.out.c,
                             .oh = layer.out.h,
                             .ow = layer.out.w,
                             .size = spec.size,
                             .stride = spec.stride,
                             .pad = spec.pad};
  const TensorId biases = context.parameter(layer, "biases", Shape{g.dst_image()});
  const TensorId weights =
      context.parameter(layer, "weights", Shape{g.locations() * g.filters, g.taps()});
  const TensorId y = context.add(ops::kLocalForward, std::make_shared<const ops::LocalParams>(g),
                                 {context.previous(layer), weights, biases}, layer, "local")[0];
  context.set_output(layer.index, context.activate(y, spec.activation, layer));
}

void lower_implicit(LowerContext& context, const Layer& layer, const ImplicitSpec& spec) {
  const TensorId weights = context.parameter(layer, "weights", Shape{layer.out.elements()},
                                             UniformStart{.mean = spec.mean, .reach = spec.std});
  const Shape shape{context.images(), layer.out.c, layer.out.h, layer.out.w};
  context.set_output(
      layer.index, context.add(ops::kBroadcast, std::make_shared<const ops::BroadcastParams>(shape),
                               {weights}, layer, "implicit")[0]);
}

}  // namespace lantern::layers
