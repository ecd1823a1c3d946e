#include "graph/autodiff.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lantern::graph {

GradientBuilder::GradientBuilder(Graph& graph, const std::function<bool(TensorId)>& is_trainable)
    : graph_(graph),
      forward_ops_(graph.ops().size()),
      needed_(graph.tensors().size(), false),
      readers_(graph.tensors().size(), 0) {
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const auto id = static_cast<TensorId>(i);
    const Role role = graph.tensor(id).role;
    needed_[i] = (role == Role::kParameter || role == Role::kInput) && is_trainable(id);
  }
  for (std::size_t i = 0; i < forward_ops_; ++i) {
    const Op& op = graph_.ops()[i];
    if (op.program != ProgramKind::kMiniBatch) continue;
    for (const TensorId input : op.inputs) ++readers_[index(input)];
    if (op.def->gradient == nullptr || !op.differentiable) continue;
    const bool any =
        std::ranges::any_of(op.inputs, [&](TensorId id) { return needed_[index(id)]; });
    if (!any) continue;
    for (const TensorId output : op.outputs) needed_[index(output)] = true;
  }
}

std::optional<TensorId> GradientBuilder::gradient(TensorId tensor) const {
  const auto found = gradients_.find(static_cast<std::uint32_t>(tensor));
  if (found == gradients_.end()) return std::nullopt;
  return found->second;
}

bool GradientBuilder::is_still_read(TensorId tensor, TensorId buffer) const {
  const auto lies_there = [&](TensorId other) {
    return other != tensor && gradient(other) == buffer;
  };
  return std::ranges::any_of(current_outputs_, lies_there) ||
         std::ranges::any_of(unfinished_, [&](std::uint32_t other) {
           return lies_there(static_cast<TensorId>(other));
         });
}

GradientTarget GradientBuilder::target(TensorId tensor) {
  const std::optional<TensorId> existing = gradient(tensor);
  if (existing && !is_still_read(tensor, *existing)) return {*existing, true};
  const Tensor forward = graph_.tensor(tensor);
  const bool parameter = forward.role == Role::kParameter;
  const TensorId made = temporary("d_" + forward.name, forward.type,
                                  parameter ? Role::kParameterGradient : Role::kGradient);
  if (existing) emit(*copy_, std::make_shared<const OpParams>(), {*existing}, {{made}});
  gradients_.insert_or_assign(static_cast<std::uint32_t>(tensor), made);
  return {made, parameter || existing.has_value()};
}

void GradientBuilder::share_gradient(TensorId tensor, TensorId other, const OpDef& copy,
                                     bool borrowed) {
  const std::optional<TensorId> shared = gradient(other);
  LANTERN_ASSERT(shared && !gradient(tensor),
                 "a gradient can be shared once, before any contribution");
  gradients_.emplace(static_cast<std::uint32_t>(tensor), *shared);
  copy_ = &copy;
  if (!borrowed) return;
  borrowed_.insert(static_cast<std::uint32_t>(tensor));
  unfinished_.insert(static_cast<std::uint32_t>(tensor));
}

void GradientBuilder::emit(const OpDef& def, std::shared_ptr<const OpParams> params,
                           std::vector<TensorId> inputs,
                           const std::vector<GradientTarget>& outputs) {
  std::vector<TensorId> tensors;
  std::vector<bool> accumulates;
  for (const GradientTarget& output : outputs) {
    tensors.push_back(output.tensor);
    accumulates.push_back(output.accumulate);
  }
  graph_.add_op_to(def, std::move(params), std::move(inputs), std::move(tensors),
                   std::move(accumulates), ProgramKind::kMiniBatch, layer_);
}

TensorId GradientBuilder::temporary(const std::string& name, TensorType type, Role role) {
  const TensorId made = graph_.add_tensor(name, type, role);
  needed_.resize(graph_.tensors().size(), false);
  return made;
}

void GradientBuilder::run() {
  for (std::size_t i = forward_ops_; i-- > 0;) {
    const Op op = graph_.ops()[i];  // a copy: emitting may move the list
    if (op.program != ProgramKind::kMiniBatch || op.def->gradient == nullptr || !op.differentiable)
      continue;
    const bool any = std::ranges::any_of(op.inputs, [&](TensorId id) { return wants(id); });
    if (!any) continue;
    layer_ = op.layer;
    current_outputs_ = op.outputs;
    op.def->gradient(*this, op);
    for (const TensorId output : op.outputs) unfinished_.erase(static_cast<std::uint32_t>(output));
  }
  current_outputs_.clear();
}

}  // namespace lantern::graph
