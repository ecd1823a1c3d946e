#include <algorithm>

#include "layers/class_files.hpp"
#include "layers/lower_context.hpp"
#include "ops/cost/cost.hpp"
#include "ops/linear/linear.hpp"
#include "ops/softmax/softmax.hpp"

namespace lantern::layers {

using graph::Role;
using graph::TensorId;

void lower_connected(LowerContext& context, const Layer& layer, const ConnectedSpec& spec) {
  const std::int64_t inputs = layer.in.elements();
  const Shape outputs{spec.output};
  const bool normalized = spec.batch_normalize != 0;
  const TensorId biases = context.parameter(layer, "biases", outputs);
  const TensorId weights = context.parameter(layer, "weights", Shape{spec.output, inputs});
  if (normalized) {  // the order of the weights file
    context.parameter(layer, "scales", outputs);
    context.state(layer, "rolling_mean", outputs);
    context.state(layer, "rolling_variance", outputs);
  }
  std::vector<TensorId> operands{context.previous(layer), weights};
  if (!normalized) operands.push_back(biases);
  TensorId y = context.add(ops::kLinearForward, std::make_shared<const graph::OpParams>(), operands,
                           layer, "linear")[0];
  y = normalized ? context.batch_norm(y, spec.activation, std::nullopt, layer)
                 : context.activate(y, spec.activation, layer);
  if (context.training()) {
    y = context.add(ops::kClampGradient, std::make_shared<const graph::OpParams>(), {y}, layer,
                    "out")[0];
  }
  context.set_output(layer.index, y);
}

void lower_softmax(LowerContext& context, const Layer& layer, const SoftmaxSpec& spec) {
  auto params =
      std::make_shared<ops::SoftmaxParams>(spec.groups, spec.temperature, spec.spatial != 0);
  params->tree = read_word_tree(layer, spec.tree, layer.in.elements());
  const TensorId x = context.previous(layer);
  if (!context.training() || spec.noloss != 0) {
    const Role role = context.training() ? Role::kActivation : Role::kOutput;
    context.set_output(layer.index,
                       context.add(ops::kSoftmaxForward, params, {x}, layer, "softmax", role)[0]);
    return;
  }
  const TensorId truth = context.truth(layer, layer.in.elements());
  const auto outputs = context.add(ops::kSoftmaxLoss, params, {x, truth}, layer, "softmax");
  context.graph().set_role(outputs[2], Role::kOutput);
  context.set_output(layer.index, outputs[0]);
  context.lowered().losses.push_back({.layer = layer.index,
                                      .yolo = std::nullopt,
                                      .cost = outputs[2],
                                      .output = outputs[0],
                                      .delta = outputs[1],
                                      .truth = truth});
}

namespace {
// A cost has no map: nothing may read it.
void check_unread(const LowerContext& context, const Layer& layer) {
  for (const Layer& other : context.network().layers) {
    const bool follows =
        other.index == layer.index + 1 && !std::holds_alternative<RouteSpec>(other.spec);
    if (follows || std::ranges::count(other.sources, layer.index) != 0) {
      refuse(layer, "the layer at {} reads its output; a cost has none", other.where);
    }
  }
}
}  // namespace

void lower_cost(LowerContext& context, const Layer& layer, const CostSpec& spec) {
  check_unread(context, layer);
  const TensorId x = context.previous(layer);
  if (!context.training()) {
    context.set_output(layer.index, x);  // what the network gives
    return;
  }
  const auto kind = spec.type == CostType::kSse      ? ops::CostKind::kSse
                    : spec.type == CostType::kMasked ? ops::CostKind::kMasked
                                                     : ops::CostKind::kSmooth;
  const TensorId truth = context.truth(layer, layer.in.elements());
  const auto outputs =
      context.add(ops::kCostLoss, std::make_shared<const ops::CostParams>(kind, spec.scale),
                  {x, truth}, layer, "cost");
  context.graph().set_role(outputs[1], Role::kOutput);
  context.lowered().losses.push_back({.layer = layer.index,
                                      .yolo = std::nullopt,
                                      .cost = outputs[1],
                                      .output = x,
                                      .delta = outputs[0],
                                      .truth = truth});
}

}  // namespace lantern::layers
