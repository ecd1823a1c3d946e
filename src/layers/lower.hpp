#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "layers/network.hpp"
#include "ops/yolo_loss/yolo_params.hpp"

namespace lantern::ops {
struct GaussianParams;
struct DetectionParams;
struct RegionParams;
}  // namespace lantern::ops

namespace lantern::layers {

struct LowerOptions {
  bool training = false;        ///< make the mini_batch, check and update programs
  std::int64_t mini_batch = 1;  ///< images of one mini-batch, all time steps of it
  /// Images of one run of the forward program; 0: no forward program.
  std::int64_t forward_batch = 1;
  /// What the images are to recurrent layers: so many sequences side by side, forward_batch /
  /// forward_sequences steps of each, image index step * forward_sequences + sequence.
  std::int64_t forward_sequences = 1;
  bool fuse_layers = true;  ///< fold a shortcut or pool into the batch norm before it; off where
                            ///< layer outputs are read
  bool input_gradient = false;  ///< also the gradient of the image
  /// Inference only: batch norms go into the weights of their convolutions (see Lowered::folded),
  /// activations and sums behind them into the convolutions themselves.
  bool fold = false;
};

/// Initial values drawn from mean - reach .. mean + reach.
struct UniformStart {
  float mean = 0, reach = 0;
};

/// One array of the weights file as a tensor, with what training keeps beside it.
struct ParameterBinding {
  int layer = 0;
  std::string array;  ///< name as in parameter_arrays()
  graph::TensorId tensor{};
  std::optional<graph::TensorId> gradient;  ///< when trained
  std::optional<graph::TensorId> momentum;
  std::optional<graph::TensorId> next;  ///< rolling statistics: the shadow that `update` commits
  std::optional<graph::TensorId>
      second_moment;  ///< Adam: mean of squares; `momentum` then holds the first moment
  std::optional<graph::TensorId> average;  ///< of the weights so far, with ema_alpha
  std::optional<UniformStart> start;       ///< where reference/training.md 9.4 has a law of its own
};

/// A layer that adds to the cost of the mini-batch.
struct LossBinding {
  int layer = 0;
  std::optional<ops::YoloParams> yolo;  ///< a [yolo] head: `cost` holds YoloImageStats
  graph::TensorId cost{};               ///< one record an image: YoloImageStats, or a double
  graph::TensorId output{};
  graph::TensorId delta{};
  graph::TensorId truth{};
};

/// A detection head of the forward program: [yolo], unless one of the others is set.
struct HeadBinding {
  int layer = 0;
  ops::YoloParams yolo;
  graph::TensorId output{};
  std::shared_ptr<const ops::GaussianParams> gaussian;
  std::shared_ptr<const ops::RegionParams> region;
  std::shared_ptr<const ops::DetectionParams> detection;
};

/// What a recurrent layer keeps from one run of a program to the next.
struct StateBinding {
  int layer = 0;
  graph::ProgramKind program = graph::ProgramKind::kForward;
  graph::TensorId tensor{};
  /// The value of the last update; unset where none has to survive a dropped iteration.
  std::optional<graph::TensorId> committed;
};

/// The whole of a network as one graph of programs, and which tensor is what.
struct Lowered {
  graph::Graph graph;
  std::optional<graph::TensorId> images;          ///< of the mini-batch program [N, C, H, W]
  std::optional<graph::TensorId> forward_images;  ///< of the forward program
  std::vector<ParameterBinding> parameters;       ///< in the order of the weights file
  std::vector<StateBinding> states;
  /// Layers, ascending, whose "weights" and "biases" hold the batch norm as well: they have no
  /// other arrays as parameters, and whoever sets these folds the others in (io/fold.hpp).
  std::vector<int> folded;
  std::vector<LossBinding> losses;
  std::vector<HeadBinding> heads;
  std::vector<std::optional<graph::TensorId>> outputs;          ///< by layer, mini-batch program
  std::vector<std::optional<graph::TensorId>> forward_outputs;  ///< by layer, forward program
  std::vector<graph::TensorId> checked;  ///< parameter gradients in the order of the finite flags
  std::optional<graph::TensorId> finite_flags;
  std::optional<graph::TensorId> input_gradient;
  std::int64_t truth_floats = 0;  ///< of one image
};

/// Turns a network into a graph of ops. Throws kInvalidConfig, at the section's place, for what the
/// engine cannot run.
Lowered lower(const Network& network, const LowerOptions& options);

}  // namespace lantern::layers
