#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"
#include "graph/selected.hpp"
#include "ops/layout.hpp"

namespace lantern::ops {

/// What changes from run to run of a program. Everything else is fixed when the kernel is made.
struct RunContext {
  std::uint64_t seed = 0;
  std::int64_t iteration = 0;  ///< 1 for the first update of a run from scratch
  int subdivision = 0;         ///< index of the mini-batch within the iteration
  float learning_rate = 0;     ///< of the schedule, without layer factors
  float momentum = 0.9F;
  float decay = 0;
  float batch = 1;  ///< images of one update; divides the gradients
  std::int64_t max_iterations = 0;
  std::int64_t burn_in = 0;
};

/// One op made ready to run. `bind` gets the addresses once, in the order inputs, outputs, scratch;
/// `run` allocates nothing and is a pure function of the bytes it reads and of the context.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;
  virtual void bind(std::span<void* const> operands) = 0;
  virtual void run(const RunContext& context) = 0;
};

/// A kernel's answer to "how would you run this op": the layouts it reads and writes and the memory
/// it needs besides.
struct KernelChoice {
  std::string name;
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
  std::vector<Bytes> scratch;
  std::vector<graph::AliasHint> may_alias;
  std::int64_t image_group = 0;
  std::unique_ptr<Kernel> kernel;
};

/// What a kernel may look at when it chooses.
struct SelectContext {
  const graph::Graph& graph;
  int block;    ///< preferred channel block of activations
  int threads;  ///< compute threads the program will run with
  /// Layouts decided so far, by tensor; empty: free to choose.
  std::span<const std::optional<Layout>> layouts;

  const Shape& shape(graph::TensorId id) const { return graph.type(id).shape; }
  const std::optional<Layout>& layout(graph::TensorId id) const {
    return layouts[graph::index(id)];
  }
  /// The layout of a data tensor, or the preferred one when it is free. One-channel-block maps stay
  /// blocked.
  Layout data_layout(graph::TensorId id) const {
    return layout(id).value_or(Layout{.block = block});
  }
};

using ChooseKernel = KernelChoice (*)(const graph::Op& op, const SelectContext& context);

/// One row of the table of kernels: the op kind and how to choose an implementation for it.
struct KernelEntry {
  const graph::OpDef* op;
  ChooseKernel choose;
};

/// Every op of the library with its CPU kernels, listed outright in registry.cpp.
std::span<const KernelEntry> kernel_table();

/// Helper for kernels whose whole state is a lambda over operand pointers.
template <typename Run>
class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(Run run) : run_(std::move(run)) {}
  void bind(std::span<void* const> operands) override {
    operands_.assign(operands.begin(), operands.end());
  }
  void run(const RunContext& context) override { run_(std::span<void* const>(operands_), context); }

 private:
  Run run_;
  std::vector<void*> operands_;
};

template <typename Run>
std::unique_ptr<Kernel> make_kernel(Run run) {
  return std::make_unique<FunctionKernel<Run>>(std::move(run));
}

}  // namespace lantern::ops
