#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "exec/executor.hpp"

namespace lantern::test {

/// A chain written by hand: a[0] = f(input, parameter), a[i] = f(a[i-1]), then backwards
/// g = h(g, a[i]) in place, result = g. The update adds the result to the parameter.
struct Chain {
  enum class Evict { kNothing, kToHost, kToFile, kToBoth };

  int layers = 6;
  Bytes bytes = 64_KiB;  ///< of a tensor
  Evict evict = Evict::kToHost;
  double op_seconds = 0;  ///< by the cost model, of every op
  /// Called by every op before it works, with its number in the mini-batch program.
  std::function<void(int)> before_op = {};

  graph::TensorId input() const { return graph::TensorId{0}; }
  graph::TensorId parameter() const { return graph::TensorId{1}; }
  graph::TensorId result() const { return graph::TensorId{2}; }

  ops::Selection selection() const;
  /// Evicted activations leave the arena after two further layers; only a few are in it at a time.
  plan::Program program() const;

  /// Sets input and parameter.
  void feed(exec::Executor& executor) const;
  /// Feeds, runs mini-batch and update so many times; result and parameter.
  std::vector<float> run(exec::Executor& executor, int times = 2) const;
  std::vector<float> values(const exec::Executor& executor) const;
  /// What `run` gives with nothing evicted.
  std::vector<float> expected(int times = 2) const;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace lantern::test
