#include <algorithm>

#include "layers/lower_context.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/sgd/sgd.hpp"
#include "ops/tied_filters/tied_filters.hpp"

namespace lantern::layers {

using graph::ProgramKind;
using graph::Role;
using graph::TensorId;

namespace {

// The first iteration that may change the layer: stopbackward=N holds it and all before it back,
// dont_update and burnin_update only itself (reference/training.md section 10).
std::int64_t first_update(const Network& network, const Layer& layer) {
  std::int64_t first = 0;
  for (const Layer& other : network.layers) {
    if (other.index >= layer.index)
      first = std::max<std::int64_t>(first, other.common.stopbackward);
  }
  if (layer.common.dont_update > 0)
    first = std::max<std::int64_t>(first, layer.common.dont_update + 1);
  return std::max<std::int64_t>(
      first, static_cast<std::int64_t>(layer.common.burnin_update) * network.net.burn_in);
}

// ema_alpha averages what convolutions are trained to, no statistics (reference/training.md 11).
bool is_averaged(const Layer& layer, std::string_view array) {
  return std::holds_alternative<ConvolutionalSpec>(layer.spec) &&
         (array == "weights" || array == "biases" || array == "scales");
}

// What the step reads in place of the gradient of weights that are tied to each other or centred.
TensorId filter_gradient(const Network& network, Lowered& lowered, const ParameterBinding& binding,
                         const ops::TiedFiltersParams& params) {
  graph::Graph& graph = lowered.graph;
  const TensorId made = graph.add_tensor(graph.tensor(*binding.gradient).name + ".filters",
                                         graph.type(*binding.gradient), Role::kGradient);
  std::vector<TensorId> inputs{*binding.gradient};
  // The buffer of SGD is part of what moves the weights; the moments of Adam are not.
  if (network.net.adam == 0) inputs.push_back(*binding.momentum);
  graph.add_op_to(ops::kFilterGradient, std::make_shared<const ops::TiedFiltersParams>(params),
                  inputs, {made}, {false}, ProgramKind::kUpdate, binding.layer);
  return made;
}

}  // namespace

void lower_update(const Network& network, Lowered& lowered) {
  graph::Graph& graph = lowered.graph;
  for (const ParameterBinding& binding : lowered.parameters) {
    if (binding.gradient) lowered.checked.push_back(*binding.gradient);
  }
  if (!lowered.checked.empty()) {
    lowered.finite_flags = graph.add_tensor(
        "finite_flags", {Shape{static_cast<std::int64_t>(lowered.checked.size())}}, Role::kOutput);
    graph.add_op_to(ops::kFiniteCheck, std::make_shared<const graph::OpParams>(), lowered.checked,
                    {*lowered.finite_flags}, {}, ProgramKind::kCheck, -1);
  }
  for (ParameterBinding& binding : lowered.parameters) {
    const Layer& layer = network.layers[static_cast<std::size_t>(binding.layer)];
    if (binding.gradient) {
      binding.momentum = graph.add_tensor(graph.tensor(binding.tensor).name + ".momentum",
                                          graph.type(binding.tensor), Role::kState);
      const bool weights = is_weights(binding.array);
      const float clip = weights ? layer.common.clip : 0.0F;
      const auto* convolution = std::get_if<ConvolutionalSpec>(&layer.spec);
      if (binding.array != "weights") convolution = nullptr;
      ops::TiedFiltersParams tied;
      if (convolution != nullptr) {
        tied.tie = filter_tie(*convolution);
        tied.angle = convolution->angle;
        // Darknet: only behind batch normalisation.
        tied.centre = convolution->grad_centr != 0 && convolution->batch_normalize != 0;
        tied.filters = convolution->filters;
        tied.size = convolution->size;
        tied.weights = binding.tensor;
        tied.first_iteration = first_update(network, layer);
      }
      TensorId gradient = *binding.gradient;
      if (tied.tie != ops::FilterTie::kNone || tied.centre)
        gradient = filter_gradient(network, lowered, binding, tied);
      if (network.net.adam != 0) {
        binding.second_moment = graph.add_tensor(graph.tensor(binding.tensor).name + ".squares",
                                                 graph.type(binding.tensor), Role::kState);
        auto params = std::make_shared<ops::AdamParams>();
        params->beta1 = network.net.B1;
        params->beta2 = network.net.B2;
        params->epsilon = network.net.eps;
        params->rate_factor = layer.common.learning_rate;
        params->clip = clip;
        params->first_iteration = first_update(network, layer);
        graph.add_op_to(ops::kAdamStep, params, {gradient},
                        {binding.tensor, *binding.momentum, *binding.second_moment},
                        {true, true, true}, ProgramKind::kUpdate, binding.layer);
      } else {
        // The weights of a shortcut do not decay, and their buffer stays within [-1, 1]
        // (reference/layers.md 4.6).
        const bool shortcut = std::holds_alternative<ShortcutSpec>(layer.spec);
        auto params = std::make_shared<ops::SgdParams>();
        params->decays = weights && !shortcut;
        params->rate_factor = layer.common.learning_rate;
        params->limit = shortcut ? 1.0F : 0.0F;
        params->clip = clip;
        params->reverse = convolution != nullptr ? convolution->reverse : 0.0F;
        params->first_iteration = first_update(network, layer);
        graph.add_op_to(ops::kSgdStep, params, {gradient}, {binding.tensor, *binding.momentum},
                        {true, true}, ProgramKind::kUpdate, binding.layer);
      }
      if (tied.tie != ops::FilterTie::kNone) {
        graph.add_op_to(ops::kTieFilters, std::make_shared<const ops::TiedFiltersParams>(tied), {},
                        {binding.tensor}, {true}, ProgramKind::kUpdate, binding.layer);
      }
      if (network.net.ema_alpha > 0 && is_averaged(layer, binding.array)) {
        binding.average = graph.add_tensor(graph.tensor(binding.tensor).name + ".average",
                                           graph.type(binding.tensor), Role::kState);
        auto params = std::make_shared<ops::AverageParams>();
        params->alpha = network.net.ema_alpha;
        graph.add_op_to(ops::kAverageStep, params, {}, {binding.tensor, *binding.average},
                        {true, true}, ProgramKind::kUpdate, binding.layer);
      }
    }
    if (binding.next) {
      graph.add_op_to(ops::kCopy, std::make_shared<const graph::OpParams>(), {*binding.next},
                      {binding.tensor}, {}, ProgramKind::kUpdate, binding.layer);
    }
  }
  for (const StateBinding& state : lowered.states) {
    if (!state.committed) continue;
    graph.add_op_to(ops::kCopy, std::make_shared<const graph::OpParams>(), {state.tensor},
                    {*state.committed}, {}, ProgramKind::kUpdate, state.layer);
  }
}

}  // namespace lantern::layers
