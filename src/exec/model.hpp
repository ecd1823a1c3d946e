#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/executor.hpp"
#include "layers/lower.hpp"
#include "layers/network.hpp"
#include "ops/yolo_loss/yolo_loss.hpp"
#include "plan/planner.hpp"

namespace lantern::exec {

/// What the programs of one network have in common at all of its sizes: its parameters, momentum
/// and gradients lie in the same places, in the same layouts.
struct SharedState {
  std::shared_ptr<const ops::NamedLayouts> layouts;
  std::shared_ptr<const plan::Places> places;
};

struct ModelOptions {
  bool training = false;
  std::int64_t mini_batch = 1;         ///< images of one mini-batch, when training
  std::int64_t forward_batch = 1;      ///< images of one inference run; 0: none
  std::int64_t forward_sequences = 1;  ///< of recurrent layers, in an inference run
  int threads = 1;
  plan::PlanOptions plan;  ///< budgets
  /// What costs are estimated for when the plan has to choose: by default a desktop's CPU, so that
  /// plans do not depend on the machine.
  DeviceSpec device{.name = "cpu",
                    .flops_per_second = 2.5e11,
                    .memory_bytes_per_second = 2e10,
                    .op_seconds = 5e-6};
  /// Fills SelectedOp::seconds where better is known (measured); empty: by `device`.
  std::function<void(const ops::Selection&, graph::Selected&)> costs{};
  SharedState shared{};  ///< with the programs of other sizes; empty: with none
  bool fuse_layers = true;
  bool input_gradient = false;
  bool fold = false;  ///< inference only: see layers::LowerOptions
  /// Arena, tiers and what else the executor of a program gets (`threads` above count); empty: an
  /// arena of its own and no tiers.
  std::function<ExecutorOptions(const plan::Program&)> executor;
};

/// The cost of one loss layer over the last mini-batch, not divided by the images.
struct LossReport {
  int layer = 0;
  double cost = 0;
  std::optional<ops::YoloStats> yolo;
};

/// What compiling gives before any memory is taken: enough to plan and to dump.
struct Compiled {
  layers::Lowered lowered;
  ops::Selection selection;
  plan::Program program;
};
/// cfg network -> graph -> selection; the program is still empty.
Compiled select(const layers::Network& network, const ModelOptions& options);
/// Makes the program of what is selected, checked.
void make_plan(Compiled& compiled, const ModelOptions& options);
/// Both.
Compiled compile(const layers::Network& network, const ModelOptions& options);

/// What programs of other sizes have to take over from this one.
SharedState state_of(const Compiled& compiled);

/// A network ready to run: its graph, its checked plan and its arena.
class Model {
 public:
  Model(layers::Network network, const ModelOptions& options);
  /// Of what compile() with the same options has given.
  Model(layers::Network network, const ModelOptions& options, Compiled compiled);

  const layers::Network& network() const { return network_; }
  const layers::Lowered& lowered() const { return lowered_; }
  const ModelOptions& options() const { return options_; }
  Executor& executor() { return *executor_; }
  const Executor& executor() const { return *executor_; }

  /// Initial weights by reference/training.md 9.4, each value a function of (seed, layer, array,
  /// index).
  void initialise(std::uint64_t seed);

  /// Values of an array of the weights file, plain order.
  void set_parameter(std::size_t binding, std::span<const float> values);
  void get_parameter(std::size_t binding, std::span<float> values) const;
  /// The same, into memory that the next call or program uses otherwise: no more than the network
  /// has anyway.
  std::span<const float> view_parameter(std::size_t binding) const;
  /// The same of any float tensor that stays between iterations.
  std::span<const float> view(graph::TensorId tensor) const;

  /// Feeds images [N,C,H,W] and truth, runs forward, loss and backward; gradients add up over
  /// subdivisions.
  void run_mini_batch(std::span<const float> images, std::span<const float> truth,
                      const ops::RunContext& context);
  /// Costs of the last mini-batch by loss layer; the network's cost is their mean.
  std::vector<LossReport> losses() const;
  /// Name of the first parameter gradient (in program order) that is not finite; call before
  /// `update`.
  std::optional<std::string> find_non_finite_gradient(const ops::RunContext& context);
  /// Changes parameters, momentum and rolling statistics.
  void update(const ops::RunContext& context);
  /// Drops the iteration: rolling statistics and the states of recurrent layers go back to those of
  /// the last update.
  void abandon_iteration();

  /// Recurrent layers start again from zero: what comes next has nothing to do with what was.
  void forget_states();

  /// Name of the first tensor, in program order, that the last mini-batch fills with a value that
  /// is not finite.
  std::optional<std::string> find_non_finite_tensor(const ops::RunContext& context);
  /// Feeds images [N,C,H,W] and runs the forward program; head outputs are then in the executor.
  void forward(std::span<const float> images);

 private:
  /// So much of the memory that view() uses.
  std::span<float> room_for(std::size_t count) const;

  layers::Network network_;
  ModelOptions options_;
  layers::Lowered lowered_;
  std::unique_ptr<Executor> executor_;
  mutable std::vector<float> view_;  // where the arena has no room for one
};

}  // namespace lantern::exec
