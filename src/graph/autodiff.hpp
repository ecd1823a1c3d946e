#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "graph/graph.hpp"

namespace lantern::graph {

/// Where a gradient contribution goes: the first one writes, later ones add, in reverse program
/// order.
struct GradientTarget {
  TensorId tensor;
  bool accumulate = false;
};

/// Appends the backward half of the mini-batch program to a graph, one forward op at a time in
/// reverse order.
class GradientBuilder {
 public:
  GradientBuilder(Graph& graph, const std::function<bool(TensorId)>& is_trainable);

  const Graph& graph() const { return graph_; }
  /// True when a gradient of this tensor is of use: a trainable parameter lies upstream of it.
  bool wants(TensorId tensor) const { return needed_[index(tensor)]; }
  /// Gradient that has reached a forward tensor so far.
  std::optional<TensorId> gradient(TensorId tensor) const;
  /// Place for the next contribution to a tensor's gradient. For parameters it always accumulates.
  /// A buffer that somebody else has still to read as it is gets copied first: the contribution
  /// goes to the copy.
  GradientTarget target(TensorId tensor);
  /// Lets `tensor` use the gradient buffer of `other` as its own first contribution, without a copy
  /// for now. Allowed only while it has none. A `borrowed` holder only reads the buffer, once, in
  /// the rule of its producer: it may not be shared on. `copy` is the op that parts the holders
  /// when one of them is added to.
  void share_gradient(TensorId tensor, TensorId other, const OpDef& copy, bool borrowed = false);
  bool is_borrowed(TensorId tensor) const {
    return borrowed_.contains(static_cast<std::uint32_t>(tensor));
  }
  /// Number of ops of the program that read a forward tensor.
  int readers(TensorId tensor) const { return readers_[index(tensor)]; }

  void emit(const OpDef& def, std::shared_ptr<const OpParams> params, std::vector<TensorId> inputs,
            const std::vector<GradientTarget>& outputs);
  /// A transient of the backward pass (statistics of a reduction, say).
  TensorId temporary(const std::string& name, TensorType type, Role role);

  /// Runs the gradient rules of all forward ops of the mini-batch program in reverse order.
  void run();

 private:
  /// Whether another tensor's gradient lies in `buffer` and its reader has not run to its end.
  bool is_still_read(TensorId tensor, TensorId buffer) const;

  Graph& graph_;
  std::size_t forward_ops_ = 0;
  std::vector<TensorId> current_outputs_;  // of the op whose rule runs
  const OpDef* copy_ = nullptr;            // set with the first shared gradient
  std::vector<bool> needed_;
  std::vector<int> readers_;  // of the forward tensors
  std::unordered_map<std::uint32_t, TensorId> gradients_;
  std::unordered_set<std::uint32_t> borrowed_;    // every borrower
  std::unordered_set<std::uint32_t> unfinished_;  // borrowers whose producer's rule has not run
  int layer_ = -1;
};

}  // namespace lantern::graph
