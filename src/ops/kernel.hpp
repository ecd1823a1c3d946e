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

/// What an update does with the averaged weights (ema_alpha of [net]).
enum class Averaging : std::uint8_t {
  kOff,
  kStart,   ///< the average becomes the weights
  kFollow,  ///< it follows the weights
  kApply,   ///< the weights become it
};

/// What changes from run to run of a program. Everything else is fixed when the kernel is made.
struct RunContext {
  /// Images this run handles, counted within the mini-batch (see KernelChoice::images).
  std::int64_t first_image = 0;
  std::int64_t images = 0;
  std::int64_t all_images = 0;  ///< of the mini-batch
  bool is_last() const { return first_image + images == all_images; }
  /// Since the run from scratch, this mini-batch included.
  double images_seen() const {
    return static_cast<double>(iteration - 1) * static_cast<double>(batch) +
           static_cast<double>((subdivision + 1) * all_images);
  }
  std::uint64_t seed = 0;
  std::int64_t iteration = 0;  ///< 1 for the first update of a run from scratch
  int subdivision = 0;         ///< index of the mini-batch within the iteration
  float learning_rate = 0;     ///< of the schedule, without layer factors
  float momentum = 0.9F;
  float decay = 0;
  float batch = 1;  ///< images of one update; divides the gradients
  std::int64_t max_iterations = 0;
  std::int64_t burn_in = 0;
  Averaging averaging = Averaging::kOff;
};

/// One op made ready to run. Operands come in the order inputs, outputs, scratch; those divided
/// into images point at the first image of the run. `run` allocates nothing and is a pure function
/// of the bytes it reads and of the context, so it may run again at other addresses with the same
/// result.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;
  /// Announces runs on so many images, so that they find everything made.
  virtual void prepare(std::int64_t /*images*/) {}
  virtual void run(std::span<void* const> operands, const RunContext& context) = 0;
};

/// A kernel's answer to "how would you run this op": the layouts it reads and writes and the memory
/// it needs besides.
struct KernelChoice {
  std::string name;
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
  std::vector<Bytes> scratch;
  std::vector<graph::AliasHint> may_alias;
  /// Images summed per call where a sum over the batch is made: runs start at multiples of it. 0:
  /// no such sum.
  std::int64_t image_group = 0;
  /// Images of the mini-batch when the op may run on a range of them at a time, 0 when it runs
  /// whole. Outputs that are not divided into images are sums: ranges then come in ascending order.
  std::int64_t images = 0;
  std::int64_t groups = 1;  ///< of channels, of a convolution
  /// Scratch holds sums between the runs; outputs that are sums are written by the last run.
  bool carries = false;
  std::unique_ptr<Kernel> kernel;
};

/// Images that the bytes of a tensor divide into: data and values kept per image do; what belongs
/// to parameters, and what stays between iterations, is used whole (0).
inline std::int64_t images_of(const graph::Tensor& tensor) {
  const bool whole = tensor.role == graph::Role::kParameter || tensor.role == graph::Role::kState ||
                     tensor.role == graph::Role::kParameterGradient;
  return whole || tensor.type.shape.rank() < 2 ? 0 : tensor.type.shape[0];
}

/// What a kernel may look at when it chooses.
struct SelectContext {
  const graph::Graph& graph;
  int block;    ///< preferred channel block of activations
  int threads;  ///< compute threads the program will run with
  /// Layouts decided so far, by tensor; empty: free to choose.
  std::span<const std::optional<Layout>> layouts;

  const Shape& shape(graph::TensorId id) const { return graph.type(id).shape; }
  /// Images that the bytes of a tensor divide into, 0 where it is used whole.
  std::int64_t images(graph::TensorId id) const { return images_of(graph.tensor(id)); }
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

/// A kernel that could run on a range of images, for an op that runs whole.
class WholeKernel final : public Kernel {
 public:
  WholeKernel(std::unique_ptr<Kernel> kernel, std::int64_t images)
      : kernel_(std::move(kernel)), images_(images) {
    kernel_->prepare(images_);
  }
  void run(std::span<void* const> operands, const RunContext& context) override {
    RunContext whole = context;
    whole.first_image = 0;
    whole.images = images_;
    whole.all_images = images_;
    kernel_->run(operands, whole);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::int64_t images_;
};

/// Helper for kernels that are a function of their operands.
template <typename Run>
class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(Run run) : run_(std::move(run)) {}
  void run(std::span<void* const> operands, const RunContext& context) override {
    run_(operands, context);
  }

 private:
  Run run_;
};

template <typename Run>
std::unique_ptr<Kernel> make_kernel(Run run) {
  return std::make_unique<FunctionKernel<Run>>(std::move(run));
}

}  // namespace lantern::ops
