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

namespace {
// The truth of an image is one vector; every loss that reads it wants the same length.
TensorId truth_vector(LowerContext& context, const Layer& layer) {
  const std::int64_t values = layer.in.elements();
  const std::int64_t known = context.lowered().truth_floats;
  if (known != 0 && known != values) {
    refuse(layer, "wants {} truth values an image, another loss of this network has {}; all losses read the same truth",
           values, known);
  }
  return context.truth(values);
}
}  // namespace

void lower_softmax(LowerContext& context, const Layer& layer, const SoftmaxSpec& spec) {
  if (!spec.tree.empty()) refuse(layer, "tree is not supported by this version");
  if (spec.spatial != 0) refuse(layer, "spatial=1 is not supported by this version");
  auto params = std::make_shared<const ops::SoftmaxParams>(spec.groups, spec.temperature);
  const TensorId x = context.previous(layer);
  if (!context.training() || spec.noloss != 0) {
    const Role role = context.training() ? Role::kActivation : Role::kOutput;
    context.set_output(layer.index,
                       context.add(ops::kSoftmaxForward, params, {x}, layer, "softmax", role)[0]);
    return;
  }
  const TensorId truth = truth_vector(context, layer);
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

void lower_cost(LowerContext& context, const Layer& layer, const CostSpec& spec) {
  const TensorId x = context.previous(layer);
  context.set_output(layer.index, x);
  if (!context.training()) return;
  const auto kind = spec.type == CostType::kSse      ? ops::CostKind::kSse
                    : spec.type == CostType::kMasked ? ops::CostKind::kMasked
                                                     : ops::CostKind::kSmooth;
  const TensorId truth = truth_vector(context, layer);
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
