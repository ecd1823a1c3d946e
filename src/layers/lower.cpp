#include "layers/lower.hpp"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "graph/autodiff.hpp"
#include "layers/compatibility.hpp"
#include "layers/layer_def.hpp"
#include "layers/lower_context.hpp"
#include "ops/activation/activation_op.hpp"
#include "ops/batch_norm/batch_norm.hpp"
#include "ops/batch_norm/batch_norm_pool.hpp"
#include "ops/batch_norm/cross_batch.hpp"

namespace lantern::layers {

using graph::ProgramKind;
using graph::Role;
using graph::TensorId;

namespace {

void lower_layer(LowerContext& context, const Layer& layer) {
  std::visit(
      [&](const auto& spec) {
        using S = std::decay_t<decltype(spec)>;
        if constexpr (std::is_same_v<S, ConvolutionalSpec>) {
          lower_convolutional(context, layer, spec);
        } else if constexpr (std::is_same_v<S, MaxpoolSpec>) {
          lower_maxpool(context, layer, spec);
        } else if constexpr (std::is_same_v<S, UpsampleSpec>) {
          lower_upsample(context, layer, spec);
        } else if constexpr (std::is_same_v<S, RouteSpec>) {
          lower_route(context, layer, spec);
        } else if constexpr (std::is_same_v<S, ShortcutSpec>) {
          lower_shortcut(context, layer, spec);
        } else if constexpr (std::is_same_v<S, YoloSpec>) {
          lower_yolo(context, layer, spec);
        } else if constexpr (std::is_same_v<S, GaussianYoloSpec>) {
          lower_gaussian_yolo(context, layer, spec);
        } else if constexpr (std::is_same_v<S, RegionSpec>) {
          lower_region(context, layer, spec);
        } else if constexpr (std::is_same_v<S, ActivationSpec>) {
          lower_activation(context, layer, spec);
        } else if constexpr (std::is_same_v<S, BatchnormSpec>) {
          lower_batchnorm(context, layer, spec);
        } else if constexpr (std::is_same_v<S, AvgpoolSpec>) {
          lower_avgpool(context, layer, spec);
        } else if constexpr (std::is_same_v<S, LocalAvgpoolSpec>) {
          lower_local_avgpool(context, layer, spec);
        } else if constexpr (std::is_same_v<S, ScaleChannelsSpec>) {
          lower_scale_channels(context, layer, spec);
        } else if constexpr (std::is_same_v<S, SamSpec>) {
          lower_sam(context, layer, spec);
        } else if constexpr (std::is_same_v<S, DropoutSpec>) {
          lower_dropout(context, layer, spec);
        } else if constexpr (std::is_same_v<S, EmptySpec>) {
          context.set_output(layer.index,
                             context.previous(layer));  // another name for the same map
        } else if constexpr (std::is_same_v<S, ReorgSpec>) {
          lower_reorg(context, layer, spec);
        } else if constexpr (std::is_same_v<S, Reorg3dSpec>) {
          lower_reorg3d(context, layer, spec);
        } else if constexpr (std::is_same_v<S, ConnectedSpec>) {
          lower_connected(context, layer, spec);
        } else if constexpr (std::is_same_v<S, SoftmaxSpec>) {
          lower_softmax(context, layer, spec);
        } else if constexpr (std::is_same_v<S, CostSpec>) {
          lower_cost(context, layer, spec);
        } else if constexpr (std::is_same_v<S, CropSpec>) {
          lower_crop(context, layer, spec);
        } else if constexpr (std::is_same_v<S, NormalizationSpec>) {
          lower_normalization(context, layer, spec);
        } else if constexpr (std::is_same_v<S, LocalSpec>) {
          lower_local(context, layer, spec);
        } else if constexpr (std::is_same_v<S, ImplicitSpec>) {
          lower_implicit(context, layer, spec);
        } else if constexpr (std::is_same_v<S, DetectionSpec>) {
          lower_detection(context, layer, spec);
        } else if constexpr (std::is_same_v<S, ContrastiveSpec>) {
          lower_contrastive(context, layer, spec);
        } else if constexpr (std::is_same_v<S, RnnSpec>) {
          lower_rnn(context, layer, spec);
        } else if constexpr (std::is_same_v<S, CrnnSpec>) {
          lower_crnn(context, layer, spec);
        } else if constexpr (std::is_same_v<S, GruSpec>) {
          lower_gru(context, layer, spec);
        } else if constexpr (std::is_same_v<S, LstmSpec>) {
          lower_lstm(context, layer, spec);
        } else if constexpr (std::is_same_v<S, ConvLstmSpec>) {
          lower_conv_lstm(context, layer, spec);
        } else if constexpr (std::is_same_v<S, HistorySpec>) {
          lower_history(context, layer, spec);
        } else {
          refuse(layer,
                 "sections of this kind are read and checked, but this version cannot run them");
        }
      },
      layer.spec);
}

// The whole program is refused before anything is built when [net] asks for what this version does
// not do.
void check_net(const Network& network, const LowerOptions& options) {
  const NetSpec& net = network.net;
  const auto no = [&](bool asked, std::string_view key) {
    if (asked) refuse_net_key(network.path, key);
  };
  no(net.resize_mode == ResizeMode::kSame, "resize_mode");
  if (!options.training) return;
  no(net.freeze_bn != 0, "freeze_bn");
  no(net.unsupervised != 0, "unsupervised");
  no(net.adversarial_lr > 0, "adversarial_lr");
  no(net.weights_reject_freq > 0, "weights_reject_freq");
  no(net.equidistant_point > 0, "equidistant_point");
  no(net.badlabels_rejection_percentage > 0, "badlabels_rejection_percentage");
  no(net.num_sigmas_reject_badlabels > 0, "num_sigmas_reject_badlabels");
  no(net.precision != Precision::kFp32, "precision");
  no(net.conv_algorithm == ConvAlgorithm::kWinograd, "conv_algorithm");
  if (options.mini_batch % net.time_steps != 0) {
    throw Error(ErrorCode::kInvalidConfig, network.path,
                "error: [net] time_steps={} does not divide the mini-batch of {} images; a "
                "mini-batch holds whole sequences",
                net.time_steps, options.mini_batch);
  }
}

}  // namespace

LowerContext::LowerContext(const Network& network, const LowerOptions& options, bool training,
                           Lowered& lowered)
    : network_(network),
      options_(options),
      training_(training),
      lowered_(lowered),
      readers_(network.layers.size()) {
  for (const Layer& layer : network.layers) {
    for (const int source : layer.sources)
      readers_[static_cast<std::size_t>(source)].push_back(layer.index);
    if (layer.index > 0 && !find_layer_def(layer.section)->ignores_input)
      readers_[static_cast<std::size_t>(layer.index) - 1].push_back(layer.index);
  }
  auto& outputs = training ? lowered.outputs : lowered.forward_outputs;
  outputs.assign(network.layers.size(), std::nullopt);
  const Dims input = network.input();
  const TensorId images =
      graph().add_tensor(training ? "images" : "forward.images",
                         {Shape{this->images(), input.c, input.h, input.w}}, Role::kInput);
  (training ? lowered.images : lowered.forward_images) = images;
}

TensorId LowerContext::previous(const Layer& layer) const {
  if (layer.index == 0) return *(training_ ? lowered_.images : lowered_.forward_images);
  return output_of(layer.index - 1);
}

TensorId LowerContext::output_of(int layer) const {
  const auto& outputs = training_ ? lowered_.outputs : lowered_.forward_outputs;
  const std::optional<TensorId>& output = outputs[static_cast<std::size_t>(layer)];
  LANTERN_ASSERT(output.has_value(), "a layer is lowered before its readers");
  return *output;
}

void LowerContext::set_output(int layer, TensorId tensor) {
  (training_ ? lowered_.outputs : lowered_.forward_outputs)[static_cast<std::size_t>(layer)] =
      tensor;
}

std::string LowerContext::tensor_name(const Layer& layer, const std::string& what) const {
  return fmt::format("{}L{}.{}{}", training_ ? "" : "forward.", layer.index, part_names_, what);
}

const Layer& LowerContext::owner(const Layer& layer) const {
  const auto* convolution = std::get_if<ConvolutionalSpec>(&layer.spec);
  if (convolution == nullptr || !convolution->share_index) return layer;
  return owner(network_.layers[static_cast<std::size_t>(layer.sources.front())]);
}

TensorId LowerContext::parameter(const Layer& layer, const std::string& array, const Shape& shape,
                                 std::optional<UniformStart> start) {
  const int index = owner(layer).index;
  for (const ParameterBinding& binding : lowered_.parameters) {
    if (binding.layer == index && binding.array == array) return binding.tensor;
  }
  const TensorId made =
      graph().add_tensor(fmt::format("L{}.{}", index, array), {shape}, Role::kParameter);
  lowered_.parameters.push_back({.layer = index, .array = array, .tensor = made, .start = start});
  return made;
}

TensorId LowerContext::state(const Layer& layer, const std::string& array, const Shape& shape) {
  const TensorId made = parameter(layer, array, shape);
  graph().set_role(made, Role::kState);
  return made;
}

TensorId LowerContext::truth(const Layer& layer, std::int64_t floats) {
  if (const std::optional<TensorId> existing = graph().find("truth")) {
    if (lowered_.truth_floats != floats) {
      refuse(layer,
             "wants {} truth values an image, the loss before it {}; all losses of a network read "
             "the same truth",
             floats, lowered_.truth_floats);
    }
    return *existing;
  }
  lowered_.truth_floats = floats;
  return graph().add_tensor("truth", {Shape{images(), floats}}, Role::kInput);
}

std::vector<TensorId> LowerContext::add(const graph::OpDef& def,
                                        std::shared_ptr<const graph::OpParams> params,
                                        std::vector<TensorId> inputs, const Layer& layer,
                                        const std::string& what, Role role) {
  return graph().add_op(def, std::move(params), std::move(inputs),
                        training_ ? ProgramKind::kMiniBatch : ProgramKind::kForward, layer.index,
                        tensor_name(layer, what), role);
}

TensorId LowerContext::activate(TensorId x, ops::Activation activation, const Layer& layer) {
  if (activation == ops::Activation::kLinear) return x;
  return add(ops::kActivationForward, std::make_shared<const ops::ActivationParams>(activation),
             {x}, layer, "act")[0];
}

std::vector<TensorId> LowerContext::normalisation(TensorId x, const Layer& layer,
                                                  bool across_mini_batches) {
  const Shape channels{shape(x).c()};
  const TensorId scales = parameter(layer, part_arrays_ + "scales", channels);
  const TensorId biases = parameter(layer, part_arrays_ + "biases", channels);
  const TensorId rolling_mean = state(layer, part_arrays_ + "rolling_mean", channels);
  const TensorId rolling_variance = state(layer, part_arrays_ + "rolling_variance", channels);
  TensorId mean = rolling_mean;
  TensorId variance = rolling_variance;
  if (!has_fixed_statistics(layer)) {
    const std::int64_t values = shape(x).n() * shape(x).h() * shape(x).w();
    const auto statistics =
        add(ops::kBatchNormStatistics, std::make_shared<const graph::OpParams>(), {x}, layer,
            across_mini_batches ? "batch_mean" : "mean", Role::kStatistic);
    mean = statistics[0];
    variance = statistics[1];
    if (across_mini_batches) {
      const auto tensor = [&](const std::string& what, DType type, Role role) {
        return graph().add_tensor(tensor_name(layer, what), {channels, type}, role);
      };
      mean = tensor("mean", DType::kF32, Role::kStatistic);
      variance = tensor("mean.1", DType::kF32, Role::kStatistic);
      graph().add_op_to(ops::kCrossBatchMerge,
                        std::make_shared<const ops::CrossBatchParams>(values), statistics,
                        {mean, variance, tensor("running_mean", DType::kF64, Role::kState),
                         tensor("running_square", DType::kF64, Role::kState)},
                        {false, false, true, true}, ProgramKind::kMiniBatch, layer.index);
    }
    const int index = owner(layer).index;
    const auto shadow = [&](const std::string& name) -> TensorId {
      const std::string array = part_arrays_ + name;
      const auto binding = std::ranges::find_if(
          lowered_.parameters,
          [&](const ParameterBinding& b) { return b.layer == index && b.array == array; });
      if (!binding->next) {
        binding->next =
            graph().add_tensor(fmt::format("L{}.{}.next", index, array), {channels}, Role::kState);
      }
      return *binding->next;
    };
    // The merged variance is unbiased already.
    graph().add_op_to(
        ops::kBatchNormRolling,
        std::make_shared<const ops::BatchNormRollingParams>(across_mini_batches ? 1 : values),
        {mean, variance}, {shadow("rolling_mean"), shadow("rolling_variance")}, {true, true},
        ProgramKind::kMiniBatch, layer.index);
  }
  return {x, mean, variance, scales, biases};
}

TensorId LowerContext::batch_norm(TensorId x, ops::Activation activation,
                                  std::optional<TensorId> residual, const Layer& layer,
                                  bool across_mini_batches) {
  const bool fusable = !ops::mixes_channels(activation);
  std::vector<TensorId> inputs = normalisation(x, layer, across_mini_batches);
  if (residual) inputs.push_back(*residual);
  auto params = std::make_shared<const ops::BatchNormParams>(
      fusable ? activation : ops::Activation::kLinear, residual.has_value(),
      has_fixed_statistics(layer));
  const TensorId y = add(ops::kBatchNormApply, std::move(params), inputs, layer, "bn")[0];
  return fusable ? y : activate(y, activation, layer);
}

DeferredPart LowerContext::batch_norm_part(TensorId x, ops::Activation activation,
                                           const Layer& layer, bool across_mini_batches) {
  return {{ops::BatchNormParams(activation, false, has_fixed_statistics(layer)), shape(x).c()},
          normalisation(x, layer, across_mini_batches)};
}

TensorId LowerContext::batch_norm_pool(TensorId x, ops::Activation activation, const Layer& layer,
                                       bool across_mini_batches) {
  auto params = std::make_shared<const ops::BatchNormPoolParams>(
      activation, has_fixed_statistics(layer), training_);
  return add(ops::kBatchNormPool, std::move(params), normalisation(x, layer, across_mini_batches),
             layer, "pool")[0];
}

bool LowerContext::only_next_reads(int layer) const {
  const std::span<const int> all = readers(layer);
  return all.size() == 1 && all[0] == layer + 1;
}

ChannelSource LowerContext::channel_source(const Layer& layer) const {
  const DeferredPart* slice = deferred(layer.index - 1);
  if (slice == nullptr) return {.tensor = previous(layer)};
  return {slice->inputs[0], std::get<ops::ChannelSlice>(slice->part.source).first};
}

const Layer* LowerContext::plain_shortcut_behind(const Layer& layer) const {
  const auto next = static_cast<std::size_t>(layer.index) + 1;
  const std::vector<Layer>& layers = network_.layers;
  if (!options_.fuse_layers || next >= layers.size() || !only_next_reads(layer.index))
    return nullptr;
  const auto* shortcut = std::get_if<ShortcutSpec>(&layers[next].spec);
  if (shortcut == nullptr || shortcut->from.size() != 1 ||
      shortcut->weights_type != WeightsType::kNone)
    return nullptr;
  const Layer& source = layers[static_cast<std::size_t>(layers[next].sources[0])];
  return source.index != layer.index && source.out == layer.out ? &layers[next] : nullptr;
}

const Layer* LowerContext::joining_route(const Layer& layer) const {
  const std::span<const int> all = readers(layer.index);
  if (!options_.fuse_layers || all.size() != 1 || layer.common.onlyforward != 0) return nullptr;
  const Layer& reader = network_.layers[static_cast<std::size_t>(all[0])];
  const auto* route = std::get_if<RouteSpec>(&reader.spec);
  if (route == nullptr || reader.sources.size() < 2 || route->groups != 1 ||
      reader.common.onlyforward != 0)
    return nullptr;
  std::int64_t first = 0;
  for (const int source : reader.sources) {
    if (source == layer.index) break;
    first += network_.layers[static_cast<std::size_t>(source)].out.c;
  }
  // Lanes beside the slice would be taken for its padding.
  const bool ends_well =
      layer.out.c % ops::kSliceAlignment == 0 || reader.sources.back() == layer.index;
  return first % ops::kSliceAlignment == 0 && ends_well ? &reader : nullptr;
}

bool LowerContext::is_read_in_place(const Layer& layer) const {
  const auto& route = std::get<RouteSpec>(layer.spec);
  const auto next = static_cast<std::size_t>(layer.index) + 1;
  if (!options_.fuse_layers || layer.sources.size() != 1 || !only_next_reads(layer.index) ||
      layer.common.onlyforward != 0)
    return false;
  return std::holds_alternative<ConvolutionalSpec>(network_.layers[next].spec) &&
         network_.layers[next].common.onlyforward == 0 && layer.out.c % ops::kSliceAlignment == 0 &&
         layer.out.c * route.group_id % ops::kSliceAlignment == 0;
}

void LowerContext::mark_folded(const Layer& layer) {
  std::vector<int>& folded = lowered_.folded;
  const int index = owner(layer).index;
  const auto at = std::ranges::lower_bound(folded, index);
  if (at == folded.end() || *at != index) folded.insert(at, index);
}

void LowerContext::defer(int layer, DeferredPart part) {
  deferred_.emplace(layer, std::move(part));
}

const DeferredPart* LowerContext::deferred(int layer) const {
  const auto found = deferred_.find(layer);
  return found == deferred_.end() ? nullptr : &found->second;
}

bool is_trained(const Network& network, const Layer& layer) {
  if (layer.frozen) return false;
  // train_only_bn reaches back from the last layer that has it.
  return std::ranges::none_of(network.layers, [&](const Layer& other) {
    return other.index >= layer.index && other.common.train_only_bn != 0;
  });
}

Lowered lower(const Network& network, const LowerOptions& options) {
  LANTERN_ASSERT(!options.fold || !options.training, "what is trained is not folded");
  check_net(network, options);
  Lowered lowered;
  if (options.training) {
    LowerContext context(network, options, true, lowered);
    for (const Layer& layer : network.layers) {
      lowered.graph.set_differentiable(layer.common.onlyforward == 0);
      lower_layer(context, layer);
    }
    lowered.graph.set_differentiable(true);
    graph::GradientBuilder builder(lowered.graph, [&](TensorId id) {
      if (lowered.images == id) return options.input_gradient;
      const auto found = std::ranges::find_if(
          lowered.parameters, [&](const ParameterBinding& b) { return b.tensor == id; });
      return found != lowered.parameters.end() &&
             is_trained(network, network.layers[static_cast<std::size_t>(found->layer)]);
    });
    builder.run();
    for (ParameterBinding& binding : lowered.parameters)
      binding.gradient = builder.gradient(binding.tensor);
    lowered.input_gradient = builder.gradient(*lowered.images);
    lower_update(network, lowered);
  }
  if (options.forward_batch > 0) {
    LANTERN_ASSERT(options.forward_batch % options.forward_sequences == 0,
                   "every sequence has as many steps");
    LowerContext context(network, options, false, lowered);
    for (const Layer& layer : network.layers) lower_layer(context, layer);
    // What a network without heads gives is what its last layer gives.
    if (!network.layers.empty()) {
      const TensorId last = *lowered.forward_outputs.back();
      if (lowered.graph.tensor(last).role == Role::kActivation)
        lowered.graph.set_role(last, Role::kOutput);
    }
  }
  lowered.graph.verify();
  return lowered;
}

}  // namespace lantern::layers
