#include "ops/select.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <unordered_set>

#include "core/error.hpp"
#include "ops/reorder.hpp"

namespace lantern::ops {

namespace {

using graph::Op;
using graph::SelectedOp;
using graph::SelectedTensor;
using graph::TensorId;

// A sum of a parameter that another op of the same mini-batch has begun: what is there is of this
// iteration, also in its first mini-batch.
class JoiningKernel final : public Kernel {
 public:
  explicit JoiningKernel(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}
  void prepare(std::int64_t images) override { kernel_->prepare(images); }
  void run(std::span<void* const> operands, const RunContext& context) override {
    RunContext later = context;
    later.subdivision = std::max(1, context.subdivision);
    kernel_->run(operands, later);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
};

class Selector {
 public:
  Selector(const graph::Graph& graph, const SelectOptions& options)
      : graph_(graph), options_(options), layouts_(graph.tensors().size()) {
    for (const graph::Tensor& tensor : graph.tensors()) {
      result_.selected.tensors.push_back({.name = tensor.name,
                                          .role = tensor.role,
                                          .shape = tensor.type.shape,
                                          .dtype = tensor.type.dtype,
                                          .images = images_of(tensor)});
      // What the host reads or writes lies plain.
      if (tensor.role == graph::Role::kInput || tensor.role == graph::Role::kOutput) {
        layouts_[result_.selected.tensors.size() - 1] = Layout{};
      } else if (options.fixed && options.fixed->contains(tensor.name)) {
        layouts_[result_.selected.tensors.size() - 1] = options.fixed->at(tensor.name);
      }
    }
    result_.layouts.resize(graph.tensors().size());
    for (const graph::Tensor& tensor : graph.tensors()) undivided_.push_back(keeps_data(tensor));
  }

  Selection run() {
    for (const Op& op : graph_.ops()) {
      if (op.program != program_) {
        program_ = op.program;
        converted_.clear();
      }
      add(op);
    }
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      set_layout(i, layouts_[i].value_or(Layout{}));
    }
    return std::move(result_);
  }

 private:
  struct Converted {
    std::size_t tensor;
    Layout layout;
    std::size_t copy;
  };

  // State that could be data of images, though it is used whole.
  static bool keeps_data(const graph::Tensor& tensor) {
    return tensor.role == graph::Role::kState && tensor.type.shape.rank() >= 2;
  }

  // Whether every operand that holds data of images divides into just as many as the kernel runs
  // on.
  bool divides(const SelectedOp& op, std::int64_t images) const {
    const auto fits = [&](std::uint32_t tensor) {
      const std::int64_t own = result_.selected.tensors[tensor].images;
      return own == images || (own == 0 && !undivided_[tensor]);
    };
    return std::ranges::all_of(op.reads, fits) && std::ranges::all_of(op.writes, fits);
  }

  void set_layout(std::size_t tensor, const Layout& layout) {
    SelectedTensor& entry = result_.selected.tensors[tensor];
    result_.layouts[tensor] = layout;
    entry.layout = layout.describe(entry.shape);
    entry.bytes = layout.bytes(entry.shape, entry.dtype);
  }

  // A transient that holds what graph tensor `like` holds, in another layout.
  std::size_t add_tensor(TensorId like, graph::Role role, const Layout& layout) {
    const graph::Tensor& tensor = graph_.tensor(like);
    result_.selected.tensors.push_back({.name = tensor.name + "'",
                                        .role = role,
                                        .shape = tensor.type.shape,
                                        .dtype = tensor.type.dtype,
                                        .images = images_of(tensor)});
    result_.layouts.emplace_back();
    undivided_.push_back(keeps_data(tensor));
    set_layout(result_.selected.tensors.size() - 1, layout);
    return result_.selected.tensors.size() - 1;
  }

  KernelChoice choose(const Op& op) {
    const auto found =
        std::ranges::find_if(kernel_table(), [&](const KernelEntry& e) { return e.op == op.def; });
    LANTERN_ASSERT(found != kernel_table().end(), fmt::format("op {} has a kernel", op.def->name));
    const SelectContext context{graph_, options_.block, options_.threads, layouts_};
    KernelChoice choice = found->choose(op, context);
    LANTERN_ASSERT(
        choice.inputs.size() == op.inputs.size() && choice.outputs.size() == op.outputs.size(),
        fmt::format("kernel {} gives a layout for every operand", choice.name));
    return choice;
  }

  // The tensor itself or a copy of it in the wanted layout; copies are shared until somebody writes
  // the original.
  std::size_t in_layout(TensorId id, const Layout& wanted, const Op& op) {
    const std::size_t tensor = index(id);
    if (!layouts_[tensor]) layouts_[tensor] = wanted;
    if (*layouts_[tensor] == wanted) return tensor;
    for (const Converted& entry : converted_) {
      if (entry.tensor == tensor && entry.layout == wanted) return entry.copy;
    }
    const std::size_t copy = add_tensor(id, graph::Role::kActivation, wanted);
    add_reorder(tensor, *layouts_[tensor], copy, wanted, false, op);
    converted_.push_back({tensor, wanted, copy});
    return copy;
  }

  void add_reorder(std::size_t from, const Layout& from_layout, std::size_t to,
                   const Layout& to_layout, bool accumulate, const Op& op) {
    KernelChoice choice = choose_reorder(result_.selected.tensors[from].shape, from_layout,
                                         to_layout, accumulate, options_.threads);
    push(choice, {.op = "reorder",
                  .kernel = choice.name,
                  .label = result_.selected.tensors[to].name,
                  .program = op.program,
                  .layer = op.layer,
                  .reads = {static_cast<std::uint32_t>(from)},
                  .writes = {static_cast<std::uint32_t>(to)},
                  .accumulates = {accumulate}});
  }

  void push(KernelChoice& choice, SelectedOp op) {
    op.image_group = choice.image_group;
    op.groups = choice.groups;
    if (choice.images > 0 && divides(op, choice.images)) {
      op.images = choice.images;
      op.carries = choice.carries;
    } else if (choice.images > 0) {
      choice.kernel = std::make_unique<WholeKernel>(std::move(choice.kernel), choice.images);
    }
    for (const Bytes bytes : choice.scratch) {
      SelectedTensor scratch{
          .name = op.label + ".scratch", .role = graph::Role::kScratch, .dtype = DType::kU8};
      scratch.bytes = bytes;
      scratch.shape = Shape{bytes};
      scratch.layout = "raw";
      result_.selected.tensors.push_back(std::move(scratch));
      result_.layouts.emplace_back();
      undivided_.push_back(false);
      op.writes.push_back(static_cast<std::uint32_t>(result_.selected.tensors.size() - 1));
      op.accumulates.push_back(false);
    }
    result_.selected.ops.push_back(std::move(op));
    result_.kernels.push_back(std::move(choice.kernel));
  }

  // The kernel for an op whose output is added to in another layout than the kernel's writes a
  // transient instead, which is added afterwards.
  static bool adds_elsewhere(const Op& op, const Op& chosen, std::size_t output) {
    return op.accumulates[output] && !chosen.accumulates[output];
  }

  // Whether the op adds to a parameter's gradient that another op of its program has written.
  bool joins_a_sum(const Op& op) {
    if (op.program != graph::ProgramKind::kMiniBatch) return false;
    bool joins = false;
    for (const TensorId output : op.outputs) {
      if (graph_.tensor(output).role == graph::Role::kParameterGradient)
        joins |= !begun_.insert(index(output)).second;
    }
    return joins;
  }

  void add(const Op& op) {
    Op chosen = op;
    KernelChoice choice = choose(op);
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const std::optional<Layout>& fixed = layouts_[index(op.outputs[i])];
      if (op.accumulates[i] && fixed && !(*fixed == choice.outputs[i]))
        chosen.accumulates[i] = false;
    }
    if (chosen.accumulates != op.accumulates) choice = choose(chosen);
    if (joins_a_sum(op)) choice.kernel = std::make_unique<JoiningKernel>(std::move(choice.kernel));
    SelectedOp selected{.op = std::string(op.def->name),
                        .kernel = choice.name,
                        .label = op.outputs.empty() ? "" : graph_.tensor(op.outputs[0]).name,
                        .program = op.program,
                        .layer = op.layer,
                        .may_alias = choice.may_alias,
                        .flops = op.def->flops ? op.def->flops(graph_, op) : 0};
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      selected.reads.push_back(
          static_cast<std::uint32_t>(in_layout(op.inputs[i], choice.inputs[i], op)));
    }
    struct After {
      std::size_t from, to;
      Layout layout;
      bool accumulate;
    };
    std::vector<After> afterwards;
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const std::size_t tensor = index(op.outputs[i]);
      std::erase_if(converted_, [&](const Converted& entry) { return entry.tensor == tensor; });
      if (!layouts_[tensor]) layouts_[tensor] = choice.outputs[i];
      const bool accumulate = chosen.accumulates[i];
      std::size_t written = tensor;
      if (adds_elsewhere(op, chosen, i) || !(*layouts_[tensor] == choice.outputs[i])) {
        // The tensor's layout is fixed already: write a transient and convert (or add) it
        // afterwards.
        LANTERN_ASSERT(
            !accumulate,
            fmt::format("kernel {} accumulates in the layout that the tensor has", choice.name));
        written = add_tensor(op.outputs[i], graph::Role::kGradient, choice.outputs[i]);
        afterwards.push_back({written, tensor, choice.outputs[i], op.accumulates[i]});
      }
      selected.writes.push_back(static_cast<std::uint32_t>(written));
      selected.accumulates.push_back(accumulate);
    }
    push(choice, std::move(selected));
    for (const After& after : afterwards) {
      add_reorder(after.from, after.layout, after.to, *layouts_[after.to], after.accumulate, op);
    }
  }

  const graph::Graph& graph_;
  SelectOptions options_;
  std::vector<std::optional<Layout>> layouts_;
  std::vector<Converted> converted_;
  std::vector<bool> undivided_;            // parallel to the selected tensors
  std::unordered_set<std::size_t> begun_;  // parameter gradients that an op has written
  graph::ProgramKind program_ = graph::ProgramKind::kMiniBatch;
  Selection result_;
};

// oneDNN divides the work of a primitive when the primitive is made, by the team size of the
// calling thread. That must be the program's, or the bits and the scratch memory would depend on
// what ran in this thread before.
class TeamSize {
 public:
  explicit TeamSize(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~TeamSize() { omp_set_num_threads(before_); }
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;

 private:
  int before_;
};

}  // namespace

Selection select(const graph::Graph& graph, const SelectOptions& options) {
  const TeamSize team(options.threads);
  Selection result = Selector(graph, options).run();
  for (SelectedOp& op : result.selected.ops) {
    for (const std::uint32_t tensor : op.reads)
      op.bytes_touched += result.selected.tensors[tensor].bytes;
    for (std::size_t i = 0; i < op.writes.size(); ++i) {
      op.bytes_touched += result.selected.tensors[op.writes[i]].bytes * (op.accumulates[i] ? 2 : 1);
    }
  }
  return result;
}

}  // namespace lantern::ops
