#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/measure.hpp"
#include "exec/model.hpp"
#include "train/memory_settings.hpp"
#include "train/multi_scale.hpp"
#include "train/run_setup.hpp"
#include "train/run_shapes.hpp"

namespace lantern::train {

/// What a training process holds besides the arena.
struct BesideArena {
  Bytes program = 0;     ///< code, libraries, kernels, lists: resident before the arena is touched
  Bytes pictures = 0;    ///< held ready by the loader, and its threads' scratch
  Bytes evaluation = 0;  ///< pictures of -map or -topk
  Bytes rest = 0;        ///< log, chart, what grows with the iterations
  Bytes sum() const { return program + pictures + evaluation + rest; }
  std::string text() const;
};

/// The memory of one training run: its plans for all sizes, made before the first iteration, the
/// one arena that they share, and the file behind it.
class RunMemory {
 public:
  /// Plans everything; may lower the subdivisions of `setup` (mini_batch=). Error of kResource,
  /// with what would do, when a size does not fit.
  RunMemory(RunSetup& setup, const MultiScale& scale, const TrainSettings& settings,
            Console& console);

  const RunShapes& shapes() const { return *shapes_; }
  /// The network of an iteration's size; its parameters, momentum and gradients are those of the
  /// model before, which must be gone.
  std::unique_ptr<exec::Model> model(std::int64_t iteration) const;
  /// At the cfg's own size, over the parameters of the training model, which is idle meanwhile.
  std::unique_ptr<exec::Model> evaluation_model() const;
  static constexpr std::int64_t kEvaluationBatch = 4;
  static constexpr int kEvaluationQueue = 4;

  /// Whether mini-batches of this iteration's size, which take `seconds` each, differ by more than
  /// a tenth from what their plan was chosen by.
  bool runs_otherwise(std::int64_t iteration, double seconds) const;
  /// Measures ops and disk again, in the memory that the run has, and plans the size anew. True
  /// when that gives a faster plan; models made from now on run it. No model may exist meanwhile.
  bool plan_again(std::int64_t iteration, double seconds);

  Bytes arena_bytes() const { return arena_->bytes(); }
  const std::shared_ptr<exec::Trace>& trace() const { return trace_; }
  /// Models made from now on record nothing.
  void end_trace() { trace_.reset(); }

 private:
  using Key = std::pair<std::pair<std::int64_t, std::int64_t>, std::int64_t>;  // size, mini-batch
  static Key key(NetSize size, std::int64_t mini_batch) {
    return {{size.width, size.height}, mini_batch};
  }

  /// What was looked at for one size and mini-batch.
  struct Attempt {
    layers::Network network;
    exec::ModelOptions options;
    exec::Compiled compiled;
    bool fits = false;
  };

  layers::Network network(NetSize size) const;
  exec::ModelOptions options(std::int64_t mini_batch, std::int64_t forward_batch) const;
  Bytes room_to_measure() const;
  void measure_beside(std::int64_t images, bool ran);
  void measure_costs(exec::Compiled& compiled);
  bool plan(exec::Compiled& compiled, exec::ModelOptions& options) const;
  bool is_fast(const plan::Program& program, std::optional<double> most) const;
  bool try_first(std::int64_t mini_batch, std::optional<double> most, Attempt& attempt);
  void keep_first(Attempt& attempt);
  void plan_first();
  void choose_mini_batch();
  bool plan_size(NetSize size, std::int64_t mini_batch, Attempt& attempt);
  void plan_sizes();
  void plan_evaluation();
  void take_memory();
  void announce() const;
  [[noreturn]] void refuse(const Attempt& attempt);
  Bytes arena_budget() const;

  RunSetup& setup_;
  const MultiScale scale_;
  const TrainSettings& settings_;
  Console& console_;
  MemorySettings memory_;
  DeviceSpec device_;  // costs of ops that were not measured, the disk
  exec::CostMeter meter_;
  std::optional<RunShapes> shapes_;
  BesideArena beside_;
  Bytes picture_ = -1;  // decoded, the largest seen
  bool has_measured_device_ = false;
  Key first_;
  exec::SharedState shared_;
  std::map<Key, plan::Program> programs_;
  plan::Program evaluation_program_;
  std::int64_t evaluation_batch_ = 0;
  std::shared_ptr<device::Arena> arena_;
  std::shared_ptr<device::Tier> file_;
  std::shared_ptr<exec::Trace> trace_;
};

}  // namespace lantern::train
