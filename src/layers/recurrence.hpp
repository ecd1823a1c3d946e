#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/layer_def.hpp"
#include "layers/lower_context.hpp"

// What the recurrent sections share; used inside layers/ only.
namespace lantern::layers {

/// A connected layer or a convolution inside a recurrent section.
struct SubLayer {
  std::string_view name;  ///< prefix of its arrays, "self."
  std::int64_t inputs;    ///< values of a vector; for a convolution, channels
  std::int64_t outputs;
  std::optional<ConvShape> conv{};
};

/// The sub-layers of a section in the order of the weights file (reference/layers.md 8.2).
std::vector<SubLayer> sub_layers(const RnnSpec& spec, const Dims& in);
std::vector<SubLayer> sub_layers(const CrnnSpec& spec, const Dims& in);
std::vector<SubLayer> sub_layers(const GruSpec& spec, const Dims& in);
std::vector<SubLayer> sub_layers(const LstmSpec& spec, const Dims& in);
std::vector<SubLayer> sub_layers(const ConvLstmSpec& spec, const Dims& in);

/// Their arrays, in the order of the weights file.
std::vector<ParameterArray> arrays_of(const std::vector<SubLayer>& parts, bool batch_normalize);

/// Whether training goes on with the last state of the mini-batch before. Inference always does.
enum class Carry {
  kNever,     ///< every mini-batch begins new sequences
  kSequence,  ///< where a sequence spans several mini-batches
  kAlways,
};

/// Unrolls a recurrent section: a graph with the ops of every time step. Training has time_steps
/// steps of images / time_steps images; inference has forward_batch / forward_sequences
/// steps.
class Recurrence {
 public:
  /// Declares the arrays of `parts`.
  Recurrence(LowerContext& context, const Layer& layer, std::vector<SubLayer> parts,
             bool batch_normalize);
  ~Recurrence() { context_.set_part({}, {}); }
  Recurrence(const Recurrence&) = delete;
  Recurrence& operator=(const Recurrence&) = delete;

  std::size_t steps() const { return static_cast<std::size_t>(steps_); }
  std::int64_t images() const { return context_.images() / steps_; }  ///< of one step

  /// Names the ops from here on: time step `t`, and what they make ("f.").
  void at(std::size_t t, std::string_view what = {});

  std::vector<graph::TensorId> split(graph::TensorId whole);
  graph::TensorId join(const std::vector<graph::TensorId>& steps);

  /// A sub-layer on one time step.
  graph::TensorId run(std::string_view part, ops::Activation activation, graph::TensorId x,
                      std::size_t t);
  /// A sub-layer that needs no state: its product is made for all time steps at once. Batch norm
  /// stays with the single steps (reference/layers.md section 3, "time_steps > 1").
  std::vector<graph::TensorId> run_each(std::string_view part, ops::Activation activation,
                                        graph::TensorId whole);
  graph::TensorId run_whole(std::string_view part, ops::Activation activation,
                            const std::vector<graph::TensorId>& steps);

  graph::TensorId add(std::vector<graph::TensorId> terms);
  graph::TensorId multiply(graph::TensorId a, graph::TensorId b);
  graph::TensorId activate(graph::TensorId x, ops::Activation activation);
  graph::TensorId op(const graph::OpDef& def, std::shared_ptr<const graph::OpParams> params,
                     std::vector<graph::TensorId> inputs, const std::string& what);

  /// The state before the first time step, [images(), C, H, W].
  graph::TensorId initial_state(const std::string& name, const Shape& shape, Carry in_training);
  /// The state after the last one, for initial_state(name) of the next run.
  void keep_state(const std::string& name, graph::TensorId last);

 private:
  struct Kept {
    std::string name;
    graph::TensorId tensor;
  };

  const SubLayer& part(std::string_view name) const;
  // The matrix product or convolution, with its biases where no batch norm follows.
  graph::TensorId product(const SubLayer& part, graph::TensorId x);
  graph::TensorId finish(const SubLayer& part, ops::Activation activation, graph::TensorId y);
  void name_part(const SubLayer& part, std::optional<std::size_t> t);

  LowerContext& context_;
  const Layer& layer_;
  std::vector<SubLayer> parts_;
  bool batch_normalize_;
  std::int64_t steps_;
  std::vector<Kept> kept_;
};

}  // namespace lantern::layers
