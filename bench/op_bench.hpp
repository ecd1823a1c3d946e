#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/executor.hpp"
#include "graph/graph.hpp"
#include "ops/kernel.hpp"

namespace lantern::bench {

struct Options {
  int threads = 1;
  std::int64_t mini_batch = 8;
};

/// A graph with few ops, run the way the engine runs a network: select, plan, executor. Ops given
/// to `prepare` run once (they make statistics, indices and the layouts that the measured ops find
/// in a network), ops given to `measure` are timed. All tensors are persistent, so nothing is done
/// in place.
class OpBench {
 public:
  explicit OpBench(const Options& options) : options_(options) {}

  /// A map or gradient in the layout that its first reader or writer prefers.
  graph::TensorId data(const std::string& name, const Shape& shape) {
    return add(name, shape, graph::Role::kState);
  }
  /// A tensor in plain layout, as the host feeds it.
  graph::TensorId input(const std::string& name, const Shape& shape) {
    return add(name, shape, graph::Role::kInput);
  }
  graph::TensorId parameter(const std::string& name, const Shape& shape) {
    return add(name, shape, graph::Role::kParameter);
  }
  /// A tensor that holds `values` when the timing starts.
  graph::TensorId input(const std::string& name, const Shape& shape, std::vector<float> values);

  std::vector<graph::TensorId> prepare(const graph::OpDef& def,
                                       std::shared_ptr<const graph::OpParams> params,
                                       std::vector<graph::TensorId> inputs,
                                       const std::string& name) {
    return graph_.add_op(def, std::move(params), std::move(inputs), graph::ProgramKind::kForward, 0,
                         name, graph::Role::kState);
  }
  std::vector<graph::TensorId> measure(const graph::OpDef& def,
                                       std::shared_ptr<const graph::OpParams> params,
                                       std::vector<graph::TensorId> inputs,
                                       const std::string& name) {
    return graph_.add_op(def, std::move(params), std::move(inputs), graph::ProgramKind::kMiniBatch,
                         0, name, graph::Role::kState);
  }
  /// Measures an op that writes given tensors.
  void measure_to(const graph::OpDef& def, std::shared_ptr<const graph::OpParams> params,
                  std::vector<graph::TensorId> inputs, std::vector<graph::TensorId> outputs,
                  std::vector<bool> accumulates = {}) {
    graph_.add_op_to(def, std::move(params), std::move(inputs), std::move(outputs),
                     std::move(accumulates), graph::ProgramKind::kMiniBatch, 0);
  }

  const Options& options() const { return options_; }
  /// Plans, fills every tensor that comes from outside and runs what was given to `prepare`.
  void make_ready();
  /// The timing loop; counters GFLOP/s and GB/s, the kernels as label.
  void run(benchmark::State& state);

 private:
  graph::TensorId add(const std::string& name, const Shape& shape, graph::Role role);

  Options options_;
  graph::Graph graph_;
  std::vector<std::pair<graph::TensorId, std::vector<float>>> given_;
  std::vector<graph::TensorId> filled_;
  std::unique_ptr<exec::Executor> executor_;
  double flops_ = 0, bytes_ = 0;  ///< of one run of the measured ops
  std::string label_;
};

/// Registers a benchmark; its graph is built when it runs and dropped when the next one runs.
void add(const Options& options, const std::string& name, std::function<void(OpBench&)> build);

/// `count` values of about unit variance, the same every time, without denormals.
std::vector<float> some_values(std::int64_t count);

/// Rates for a loop that does `flops` and moves `bytes` in each iteration.
void set_counters(benchmark::State& state, double flops, double bytes);

/// Batch normalisation and pooling of oneDNN on the same shapes, for comparison (onednn_bench.cpp).
void add_onednn_benchmarks(const Options& options);

struct Conv {
  std::int64_t in, out, size, side;
  bool head = false;  ///< with bias, without batch normalisation
};
// Every different convolution of the net, from the image to the second head.
inline constexpr Conv kConvs[] = {{3, 16, 3, 416},    {16, 32, 3, 208},   {32, 64, 3, 104},
                                  {64, 128, 3, 52},   {128, 256, 3, 26},  {256, 512, 3, 13},
                                  {512, 1024, 3, 13}, {1024, 256, 1, 13}, {512, 255, 1, 13, true},
                                  {256, 128, 1, 13},  {384, 256, 3, 26},  {256, 255, 1, 26, true}};

/// Shapes that both files measure; a map is [mini-batch, c, side, side].
struct Map {
  std::int64_t c, side;
};
inline constexpr Map kBatchNormMaps[] = {{16, 416}, {32, 208}, {64, 104}, {128, 52},
                                         {256, 26}, {512, 13}, {1024, 13}};
struct Pool {
  std::int64_t c, side, size, stride;
};
inline constexpr Pool kPools[] = {{16, 416, 2, 2}, {32, 208, 2, 2}, {64, 104, 2, 2},
                                  {128, 52, 2, 2}, {256, 26, 2, 2}, {512, 13, 2, 1},
                                  {512, 13, 5, 1}, {512, 13, 9, 1}, {512, 13, 13, 1}};

std::string name_of(const Conv& conv);
std::string name_of(const Map& map);
std::string name_of(const Pool& pool);

}  // namespace lantern::bench
