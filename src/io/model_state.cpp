#include "io/model_state.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lantern::io {

namespace {

// What stays between iterations, in the order of the graph, which is that of the cfg.
std::vector<graph::TensorId> kept_tensors(const exec::Model& model) {
  const layers::Lowered& lowered = model.lowered();
  std::vector<graph::TensorId> kept;
  for (std::uint32_t i = 0; i < lowered.graph.tensors().size(); ++i) {
    const graph::TensorId id{i};
    const graph::Role role = lowered.graph.tensor(id).role;
    if (role != graph::Role::kParameter && role != graph::Role::kState) continue;
    // Inference starts with no memory of earlier pictures.
    const bool forward = std::ranges::any_of(lowered.states, [&](const layers::StateBinding& s) {
      return s.program == graph::ProgramKind::kForward && s.tensor == id;
    });
    if (!forward) kept.push_back(id);
  }
  return kept;
}

StateArray array_of(const exec::Model& model, graph::TensorId id) {
  const graph::Tensor& tensor = model.lowered().graph.tensor(id);
  return {tensor.name, tensor.type.shape.elements()};
}

}  // namespace

void save_state(const exec::Model& model, const std::filesystem::path& path, TrainingState state) {
  const std::vector<graph::TensorId> kept = kept_tensors(model);
  state.arrays.clear();
  for (const graph::TensorId id : kept) state.arrays.push_back(array_of(model, id));
  write_state(path, state, [&](std::size_t i) { return model.view(kept[i]); });
}

void load_state(exec::Model& model, const std::filesystem::path& path, const TrainingState& state) {
  const std::vector<graph::TensorId> kept = kept_tensors(model);
  const auto text = [](const StateArray* array) {
    return array == nullptr ? std::string("nothing")
                            : fmt::format("{} of {} numbers", array->name, array->count);
  };
  for (std::size_t i = 0; i < std::max(kept.size(), state.arrays.size()); ++i) {
    std::optional<StateArray> want;
    if (i < kept.size()) want = array_of(model, kept[i]);
    const StateArray* has = i < state.arrays.size() ? &state.arrays[i] : nullptr;
    if (want && has != nullptr && *want == *has) continue;
    throw Error(ErrorCode::kInvalidData, path.string(),
                "is the state of another network or optimiser: it has {} where {} needs {}; give "
                "its .weights file behind the cfg to start from its weights alone",
                text(has), model.network().path, text(want ? &*want : nullptr));
  }
  read_state_values(path, state, [&](std::size_t i, std::span<const float> values) {
    model.executor().write(kept[i], values);
  });
}

}  // namespace lantern::io
