#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "graph/graph.hpp"
#include "layers/lower.hpp"
#include "ops/activation/activation.hpp"
#include "ops/concat/concat.hpp"
#include "ops/conv/conv_geometry.hpp"
#include "ops/tied_filters/tied_filters_ref.hpp"

// What the lowering of a section works with; used inside layers/ only.
namespace lantern::layers {

/// A part of a concatenation that is made when the route is lowered.
struct DeferredPart {
  ops::ConcatPart part;
  std::vector<graph::TensorId> inputs;
};

/// Where a layer's input channels stand: at the beginning of a tensor, or in one with more of them.
struct ChannelSource {
  graph::TensorId tensor{};
  std::int64_t first = 0;
};

/// Builds one program (training mode or inference mode) of a network into the shared graph.
class LowerContext {
 public:
  LowerContext(const Network& network, const LowerOptions& options, bool training,
               Lowered& lowered);

  const Network& network() const { return network_; }
  const LowerOptions& options() const { return options_; }
  bool training() const { return training_; }
  std::int64_t images() const { return training_ ? options_.mini_batch : options_.forward_batch; }
  graph::Graph& graph() { return lowered_.graph; }
  Lowered& lowered() { return lowered_; }
  const Shape& shape(graph::TensorId id) const { return lowered_.graph.type(id).shape; }

  /// Output of the layer before, or the images.
  graph::TensorId previous(const Layer& layer) const;
  graph::TensorId output_of(int layer) const;
  void set_output(int layer, graph::TensorId tensor);
  bool has_output(int layer) const {
    return outputs()[static_cast<std::size_t>(layer)].has_value();
  }

  /// The layer whose parameters this one uses: its own, or those that share_index names.
  const Layer& owner(const Layer& layer) const;
  /// The named array of the owner's weights file as a parameter tensor of the given logical shape;
  /// made at first use, shared by all programs.
  graph::TensorId parameter(const Layer& layer, const std::string& array, const Shape& shape,
                            std::optional<UniformStart> start = std::nullopt);
  /// The same for a running value that gradients do not train.
  graph::TensorId state(const Layer& layer, const std::string& array, const Shape& shape);
  /// Truth of the mini-batch, `floats` an image. All losses of a network read the same; refused
  /// where they differ.
  graph::TensorId truth(const Layer& layer, std::int64_t floats);

  /// Appends an op to this program; outputs are named after the layer and `what`.
  std::vector<graph::TensorId> add(const graph::OpDef& def,
                                   std::shared_ptr<const graph::OpParams> params,
                                   std::vector<graph::TensorId> inputs, const Layer& layer,
                                   const std::string& what,
                                   graph::Role role = graph::Role::kActivation);
  /// x through the activation; x itself for linear.
  graph::TensorId activate(graph::TensorId x, ops::Activation activation, const Layer& layer);
  /// Batch norm of x with the layer's arrays, then the activation, then the residual (if any).
  /// Across mini-batches: training normalises with statistics of all mini-batches of the iteration
  /// so far.
  graph::TensorId batch_norm(graph::TensorId x, ops::Activation activation,
                             std::optional<graph::TensorId> residual, const Layer& layer,
                             bool across_mini_batches = false);

  /// The same with a 2x2 pool of stride 2 behind the activation, in one pass. Both sides of the map
  /// are even.
  graph::TensorId batch_norm_pool(graph::TensorId x, ops::Activation activation, const Layer& layer,
                                  bool across_mini_batches = false);

  /// Of what is added from now on: a prefix for the arrays of batch norm ("self."), of which a
  /// layer of sub-layers has several, and one for the names of the outputs ("self.t3.").
  void set_part(std::string arrays, std::string names) {
    part_arrays_ = std::move(arrays);
    part_names_ = std::move(names);
  }

  /// Layers that read this layer's output, one entry for every time they do.
  std::span<const int> readers(int layer) const {
    return readers_[static_cast<std::size_t>(layer)];
  }
  /// The layer's batch norm is in its weights.
  void mark_folded(const Layer& layer);

  /// True when nobody but the next layer reads this layer's output, and once.
  bool only_next_reads(int layer) const;

  /// What the layer reads: the output before it, or the channels of it that a route between them
  /// leaves to be read in place.
  ChannelSource channel_source(const Layer& layer) const;
  /// The shortcut that alone reads this layer's output, right behind it, when it adds one other map
  /// of the same shape without weights; null where there is none, or layers are not fused.
  const Layer* plain_shortcut_behind(const Layer& layer) const;

  /// The route that alone reads this layer's output and can have it written straight into its
  /// concatenation; null where there is none.
  const Layer* joining_route(const Layer& layer) const;
  /// True when nobody but the convolution behind this route reads its output, a slice of the
  /// channels of one map that the convolution can read in place.
  bool is_read_in_place(const Layer& layer) const;
  /// Leaves the output of a layer to the route that joins it, or of a route to its convolution.
  void defer(int layer, DeferredPart part);
  const DeferredPart* deferred(int layer) const;
  /// Batch norm and activation of x, for the route.
  DeferredPart batch_norm_part(graph::TensorId x, ops::Activation activation, const Layer& layer,
                               bool across_mini_batches);

 private:
  const std::vector<std::optional<graph::TensorId>>& outputs() const {
    return training_ ? lowered_.outputs : lowered_.forward_outputs;
  }
  // x, mean, variance, scales, biases: what a normalising op reads; makes the statistics where
  // training wants them.
  std::vector<graph::TensorId> normalisation(graph::TensorId x, const Layer& layer,
                                             bool across_mini_batches);
  // Layers at or before stopbackward=1 run on their rolling statistics, which stay put.
  bool has_fixed_statistics(const Layer& layer) const {
    return !training_ || layer.frozen || owner(layer).frozen;
  }
  std::string tensor_name(const Layer& layer, const std::string& what) const;

  const Network& network_;
  const LowerOptions& options_;
  bool training_;
  Lowered& lowered_;
  std::string part_arrays_, part_names_;
  std::vector<std::vector<int>> readers_;
  std::map<int, DeferredPart> deferred_;
};

/// Refuses a key by name: the engine does not run it.
template <typename... Args>
[[noreturn]] void refuse(const Layer& layer, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidConfig, layer.where, "error: [{}] {}", layer.section,
              fmt::format(format, std::forward<Args>(args)...));
}

/// What follows the activation of a convolution; empty: nothing.
using FinishConvolution = std::function<graph::TensorId(graph::TensorId)>;
/// A convolution of a program with LowerOptions::fold.
void lower_folded(LowerContext& context, const Layer& layer, const ConvolutionalSpec& spec,
                  const ops::ConvGeometry& g, const FinishConvolution& finish);

// One a section kind; each sets the layer's output.
void lower_convolutional(LowerContext& context, const Layer& layer, const ConvolutionalSpec& spec);
void lower_maxpool(LowerContext& context, const Layer& layer, const MaxpoolSpec& spec);
void lower_upsample(LowerContext& context, const Layer& layer, const UpsampleSpec& spec);
void lower_route(LowerContext& context, const Layer& layer, const RouteSpec& spec);
void lower_shortcut(LowerContext& context, const Layer& layer, const ShortcutSpec& spec);
void lower_yolo(LowerContext& context, const Layer& layer, const YoloSpec& spec);
void lower_gaussian_yolo(LowerContext& context, const Layer& layer, const GaussianYoloSpec& spec);
void lower_region(LowerContext& context, const Layer& layer, const RegionSpec& spec);
void lower_activation(LowerContext& context, const Layer& layer, const ActivationSpec& spec);
void lower_batchnorm(LowerContext& context, const Layer& layer, const BatchnormSpec& spec);
void lower_avgpool(LowerContext& context, const Layer& layer, const AvgpoolSpec& spec);
void lower_local_avgpool(LowerContext& context, const Layer& layer, const LocalAvgpoolSpec& spec);
void lower_scale_channels(LowerContext& context, const Layer& layer, const ScaleChannelsSpec& spec);
void lower_sam(LowerContext& context, const Layer& layer, const SamSpec& spec);
void lower_dropout(LowerContext& context, const Layer& layer, const DropoutSpec& spec);
void lower_reorg(LowerContext& context, const Layer& layer, const ReorgSpec& spec);
void lower_reorg3d(LowerContext& context, const Layer& layer, const Reorg3dSpec& spec);
void lower_connected(LowerContext& context, const Layer& layer, const ConnectedSpec& spec);
void lower_softmax(LowerContext& context, const Layer& layer, const SoftmaxSpec& spec);
void lower_cost(LowerContext& context, const Layer& layer, const CostSpec& spec);
void lower_crop(LowerContext& context, const Layer& layer, const CropSpec& spec);
void lower_normalization(LowerContext& context, const Layer& layer, const NormalizationSpec& spec);
void lower_local(LowerContext& context, const Layer& layer, const LocalSpec& spec);
void lower_implicit(LowerContext& context, const Layer& layer, const ImplicitSpec& spec);
void lower_contrastive(LowerContext& context, const Layer& layer, const ContrastiveSpec& spec);
void lower_detection(LowerContext& context, const Layer& layer, const DetectionSpec& spec);

/// The fixed blur of `antialiasing`, which carries the layer's stride.
graph::TensorId lower_blur(LowerContext& context, const Layer& layer, graph::TensorId x,
                           int antialiasing, int stride_x, int stride_y);

/// How the update ties the filters of a convolution.
ops::ref::FilterTie filter_tie(const ConvolutionalSpec& spec);

/// Rows of six floats that the truth of an image has: the last detection head's `max`.
int truth_rows(const Network& network);
void lower_rnn(LowerContext& context, const Layer& layer, const RnnSpec& spec);
void lower_crnn(LowerContext& context, const Layer& layer, const CrnnSpec& spec);
void lower_gru(LowerContext& context, const Layer& layer, const GruSpec& spec);
void lower_lstm(LowerContext& context, const Layer& layer, const LstmSpec& spec);
void lower_conv_lstm(LowerContext& context, const Layer& layer, const ConvLstmSpec& spec);
void lower_history(LowerContext& context, const Layer& layer, const HistorySpec& spec);

/// Gradient checks and parameter updates.
void lower_update(const Network& network, Lowered& lowered);

/// Whether update may ever change a layer's parameters.
bool is_trained(const Network& network, const Layer& layer);

}  // namespace lantern::layers
