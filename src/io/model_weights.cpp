#include "io/model_weights.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "io/fold.hpp"

namespace lantern::io {

WeightsLayout weights_layout(const layers::Network& network) {
  WeightsLayout layout;
  for (const layers::Layer& layer : network.layers) {
    const std::vector<layers::ParameterArray> arrays = layers::parameter_arrays(layer);
    if (arrays.empty()) continue;
    WeightsLayer entry{.layer = layer.index, .section = layer.section};
    entry.dontload = layer.common.dontload != 0;
    entry.dontloadscales = layer.common.dontloadscales != 0;
    const auto* conv = std::get_if<layers::ConvolutionalSpec>(&layer.spec);
    entry.flipped = conv != nullptr && conv->flipped != 0;
    const bool connected = std::holds_alternative<layers::ConnectedSpec>(layer.spec) ||
                           std::holds_alternative<layers::RnnSpec>(layer.spec) ||
                           std::holds_alternative<layers::GruSpec>(layer.spec) ||
                           std::holds_alternative<layers::LstmSpec>(layer.spec);
    std::int64_t rows = 0;  // of the matrix to come: its layer or sub-layer has named its biases
    for (const layers::ParameterArray& array : arrays) {
      if (array.name.ends_with(kBiases)) rows = array.count;
      const bool matrix = (connected || conv != nullptr) && layers::is_weights(array.name);
      entry.arrays.push_back({array.name, array.count, matrix ? rows : 0, matrix && connected});
    }
    layout.push_back(std::move(entry));
  }
  return layout;
}

namespace {
std::size_t binding_of(const layers::Lowered& lowered, int layer, std::string_view array) {
  const auto found = std::ranges::find_if(
      lowered.parameters,
      [&](const layers::ParameterBinding& b) { return b.layer == layer && b.array == array; });
  LANTERN_ASSERT(found != lowered.parameters.end(),
                 "every array of the weights file is a parameter");
  return static_cast<std::size_t>(found - lowered.parameters.begin());
}
}  // namespace

LoadedWeights load_weights(exec::Model& model, const std::filesystem::path& path, Purpose purpose,
                           Diagnostics& warnings) {
  const WeightsLayout layout = weights_layout(model.network());
  const std::vector<int>& folded = model.lowered().folded;
  const auto load = [&](std::size_t i, std::vector<std::vector<float>>& arrays) {
    const bool folds = std::ranges::binary_search(folded, layout[i].layer);
    if (folds) fold_batch_norm(layout[i], arrays);
    for (std::size_t k = 0; k < layout[i].arrays.size(); ++k) {
      std::vector<float>& values = arrays[k];
      const std::string& name = layout[i].arrays[k].name;
      if (folds && name != kWeights && name != kBiases) continue;
      // Training has drawn its start; what only looks starts with what makes no difference.
      if (values.empty() && purpose == Purpose::kEvaluation && name.ends_with(kScales))
        values.assign(static_cast<std::size_t>(layout[i].arrays[k].count), 1.0F);
      if (values.empty()) continue;
      model.set_parameter(binding_of(model.lowered(), layout[i].layer, name), values);
    }
  };
  const Weights weights = read_weights(path, layout, purpose, warnings, load);
  return {weights.header, weights.layers_loaded, weights.layers_expected};
}

void save_weights(const exec::Model& model, const std::filesystem::path& path,
                  const WeightsHeader& header, WhichWeights which) {
  LANTERN_ASSERT(model.lowered().folded.empty(), "folded weights are not those of a file");
  const WeightsLayout layout = weights_layout(model.network());
  write_weights(path, header, layout, [&](std::size_t i, std::size_t k) {
    const std::size_t binding =
        binding_of(model.lowered(), layout[i].layer, layout[i].arrays[k].name);
    const std::optional<graph::TensorId> average = model.lowered().parameters[binding].average;
    return which == WhichWeights::kAveraged && average ? model.view(*average)
                                                       : model.view_parameter(binding);
  });
}

}  // namespace lantern::io
