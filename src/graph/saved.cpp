#include "graph/saved.hpp"

#include <algorithm>

namespace lantern::graph {

Bytes saved_bytes(const Graph& graph) {
  enum class State : std::uint8_t { kAbsent, kMade, kSaved };
  std::vector<State> states(graph.tensors().size(), State::kAbsent);
  Bytes saved = 0;
  bool backward = false;
  for (const Op& op : graph.ops()) {
    if (op.program != ProgramKind::kMiniBatch) continue;
    backward = backward || std::ranges::any_of(op.outputs, [&](TensorId output) {
                 const Role role = graph.tensor(output).role;
                 return role == Role::kGradient || role == Role::kParameterGradient;
               });
    if (!backward) {
      for (const TensorId output : op.outputs) {
        if (!is_persistent(graph.tensor(output).role)) states[index(output)] = State::kMade;
      }
      continue;
    }
    for (const TensorId input : op.inputs) {
      State& state = states[index(input)];
      if (state != State::kMade) continue;
      state = State::kSaved;
      const TensorType& type = graph.type(input);
      saved += type.shape.elements() * size_of(type.dtype);
    }
  }
  return saved;
}

}  // namespace lantern::graph
