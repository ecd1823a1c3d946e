#include "graph/graph.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"

namespace lantern::graph {

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kInput:
      return "input";
    case Role::kParameter:
      return "parameter";
    case Role::kState:
      return "state";
    case Role::kParameterGradient:
      return "parameter-gradient";
    case Role::kActivation:
      return "activation";
    case Role::kGradient:
      return "gradient";
    case Role::kStatistic:
      return "statistic";
    case Role::kScratch:
      return "scratch";
    case Role::kOutput:
      return "output";
  }
  return "?";
}

std::string_view to_string(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::kMiniBatch:
      return "mini_batch";
    case ProgramKind::kCheck:
      return "check";
    case ProgramKind::kUpdate:
      return "update";
    case ProgramKind::kForward:
      return "forward";
  }
  return "?";
}

TensorId Graph::add_tensor(std::string name, TensorType type, Role role) {
  tensors_.push_back({std::move(name), type, role});
  return static_cast<TensorId>(tensors_.size() - 1);
}

std::vector<TensorId> Graph::add_op(const OpDef& def, std::shared_ptr<const OpParams> params,
                                    std::vector<TensorId> inputs, ProgramKind program, int layer,
                                    const std::string& name, Role role) {
  std::vector<TensorType> input_types;
  input_types.reserve(inputs.size());
  for (const TensorId id : inputs) input_types.push_back(type(id));
  const std::vector<TensorType> output_types = def.infer(*params, input_types);
  std::vector<TensorId> outputs;
  for (std::size_t i = 0; i < output_types.size(); ++i) {
    outputs.push_back(
        add_tensor(i == 0 ? name : fmt::format("{}.{}", name, i), output_types[i], role));
  }
  add_op_to(def, std::move(params), std::move(inputs), outputs, {}, program, layer);
  return outputs;
}

void Graph::add_op_to(const OpDef& def, std::shared_ptr<const OpParams> params,
                      std::vector<TensorId> inputs, std::vector<TensorId> outputs,
                      std::vector<bool> accumulates, ProgramKind program, int layer) {
  accumulates.resize(outputs.size(), false);
  ops_.push_back({&def, std::move(params), std::move(inputs), std::move(outputs),
                  std::move(accumulates), program, layer, differentiable_});
}

std::optional<TensorId> Graph::find(std::string_view name) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].name == name) return static_cast<TensorId>(i);
  }
  return std::nullopt;
}

std::string Graph::dump() const {
  std::string text;
  for (const Tensor& tensor : tensors_) {
    if (!is_persistent(tensor.role)) continue;
    text += fmt::format("{} {} {}{}\n", to_string(tensor.role), tensor.name,
                        to_string(tensor.type.dtype), tensor.type.shape.to_string());
  }
  for (const Op& op : ops_) {
    text += fmt::format("{} layer {}: ", to_string(op.program), op.layer);
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const Tensor& out = tensor(op.outputs[i]);
      text += fmt::format("{}{}{} {}{}", i ? ", " : "", op.accumulates[i] ? "+=" : "", out.name,
                          to_string(out.type.dtype), out.type.shape.to_string());
    }
    text += fmt::format(" = {}(", op.def->name);
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      text += (i ? ", " : "") + tensor(op.inputs[i]).name;
    const std::string params = op.params ? op.params->describe() : std::string();
    text += params.empty() ? ")\n" : ") " + params + "\n";
  }
  return text;
}

void Graph::verify() const {
  for (int kind = 0; kind < kProgramKinds; ++kind) {
    std::vector<bool> written(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) written[i] = is_persistent(tensors_[i].role);
    for (const Op& op : ops_) {
      if (op.program != static_cast<ProgramKind>(kind)) continue;
      const auto require = [&](TensorId id) {
        if (!written[index(id)]) {
          throw Error(ErrorCode::kInternal, tensor(id).name,
                      "read by {} (layer {}) before it is written", op.def->name, op.layer);
        }
      };
      for (const TensorId id : op.inputs) require(id);
      for (std::size_t i = 0; i < op.outputs.size(); ++i) {
        if (op.accumulates[i]) require(op.outputs[i]);
        written[index(op.outputs[i])] = true;
      }
    }
  }
}

}  // namespace lantern::graph
