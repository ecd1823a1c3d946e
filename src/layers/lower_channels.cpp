#include <algorithm>

#include "layers/lower_context.hpp"
#include "ops/avg_pool/avg_pool.hpp"
#include "ops/dropout/drop_block.hpp"
#include "ops/dropout/dropout.hpp"
#include "ops/reorg/reorg.hpp"
#include "ops/scale/scale.hpp"

// Pooling to means, attention, dropout and rearrangements.
namespace lantern::layers {

using graph::TensorId;

void lower_avgpool(LowerContext& context, const Layer& layer, const AvgpoolSpec& /*spec*/) {
  context.set_output(layer.index, context.add(ops::kGlobalAvgPoolForward,
                                              std::make_shared<const graph::OpParams>(),
                                              {context.previous(layer)}, layer, "avg")[0]);
}

void lower_local_avgpool(LowerContext& context, const Layer& layer, const LocalAvgpoolSpec& spec) {
  const std::int64_t offset = spec.padding / 2;
  const ops::PoolGeometry g{.n = context.images(),
                            .c = layer.in.c,
                            .ih = layer.in.h,
                            .iw = layer.in.w,
                            .oh = layer.out.h,
                            .ow = layer.out.w,
                            .kh = spec.size,
                            .kw = spec.size,
                            .sh = spec.stride_y,
                            .sw = spec.stride_x,
                            .ph = offset,
                            .pw = offset};
  context.set_output(layer.index, context.add(ops::kLocalAvgPoolForward,
                                              std::make_shared<const ops::LocalAvgPoolParams>(g),
                                              {context.previous(layer)}, layer, "avg")[0]);
}

namespace {
void lower_scale(LowerContext& context, const Layer& layer, ops::ScaleKind kind,
                 Activation activation) {
  const TensorId y = context.add(ops::kScaleForward, std::make_shared<const ops::ScaleParams>(kind),
                                 {context.output_of(layer.sources[0]), context.previous(layer)},
                                 layer, "scale")[0];
  context.set_output(layer.index, context.activate(y, activation, layer));
}
}  // namespace

void lower_scale_channels(LowerContext& context, const Layer& layer,
                          const ScaleChannelsSpec& spec) {
  const auto kind = spec.scale_wh != 0 ? ops::ScaleKind::kPerPixel : ops::ScaleKind::kPerChannel;
  lower_scale(context, layer, kind, spec.activation);
}

void lower_sam(LowerContext& context, const Layer& layer, const SamSpec& spec) {
  lower_scale(context, layer, ops::ScaleKind::kElement, spec.activation);
}

void lower_dropout(LowerContext& context, const Layer& layer, const DropoutSpec& spec) {
  const TensorId x = context.previous(layer);
  if (!context.training() || spec.probability == 0) {
    context.set_output(layer.index, x);
    return;
  }
  const TensorId y =
      spec.dropblock != 0
          ? context.add(ops::kDropBlockForward,
                        std::make_shared<const ops::DropBlockParams>(
                            spec.probability, spec.dropblock_size_abs, spec.dropblock_size_rel,
                            layer.index),
                        {x}, layer, "drop")[0]
          : context.add(ops::kDropoutForward,
                        std::make_shared<const ops::DropoutParams>(spec.probability, layer.index),
                        {x}, layer, "drop")[0];
  context.set_output(layer.index, y);
  // Darknet: [dropout] works in the memory of the layer before it, so whoever reads that layer
  // later (a route, say) sees the dropped values (reference/layers.md section 1, "Aliasing"). A
  // [dropout] or [empty] before this one shares it as well.
  for (int i = layer.index - 1; i >= 0; --i) {
    context.set_output(i, y);
    const Spec& before = context.network().layers[static_cast<std::size_t>(i)].spec;
    if (!std::holds_alternative<DropoutSpec>(before) &&
        !std::holds_alternative<EmptySpec>(before)) {
      break;
    }
  }
}

namespace {
void lower_reorganised(LowerContext& context, const Layer& layer, ops::ReorgKind kind, int stride) {
  context.set_output(
      layer.index,
      context.add(ops::kReorgForward, std::make_shared<const ops::ReorgParams>(kind, stride),
                  {context.previous(layer)}, layer, "reorg")[0]);
}
}  // namespace

void lower_reorg(LowerContext& context, const Layer& layer, const ReorgSpec& spec) {
  const auto kind = spec.reverse != 0 ? ops::ReorgKind::kDepthToSpace : ops::ReorgKind::kReorg;
  lower_reorganised(context, layer, kind, spec.stride);
}

void lower_reorg3d(LowerContext& context, const Layer& layer, const Reorg3dSpec& spec) {
  const auto kind =
      spec.reverse != 0 ? ops::ReorgKind::kDepthToSpace : ops::ReorgKind::kSpaceToDepth;
  lower_reorganised(context, layer, kind, spec.stride);
}

}  // namespace lantern::layers
