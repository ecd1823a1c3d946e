#include "io/onnx_builder.hpp"

#include "core/error.hpp"

namespace lantern::io::onnx {

std::string Builder::next_name(const std::string& op) {
  const std::string stem =
      layer_ < 0 ? op
                 : fmt::format("layer{}_{}_{}", layer_,
                               network_.layers[static_cast<std::size_t>(layer_)].section, op);
  const int number = used_[stem]++;
  return number == 0 ? stem : fmt::format("{}_{}", stem, number);
}

std::string Builder::node(const std::string& op, std::vector<std::string> inputs,
                          std::vector<std::pair<std::string, AttributeValue>> attributes) {
  std::string name = next_name(op);
  model_.nodes.push_back({.op = op,
                          .name = name,
                          .inputs = std::move(inputs),
                          .outputs = {name},
                          .attributes = std::move(attributes)});
  return name;
}

std::string Builder::constant(std::vector<std::int64_t> dims, std::vector<float> values) {
  take_room(static_cast<std::int64_t>(values.size()));
  std::string name = next_name("constant");
  model_.initializers.push_back({name, std::move(dims), std::move(values)});
  return name;
}

std::string Builder::spread(const std::string& x, std::int64_t channels) {
  if (channels == 1) return x;
  std::vector<float> ones(static_cast<std::size_t>(channels), 1.0F);
  return node("Conv", {x, constant({channels, 1, 1, 1}, std::move(ones))},
              {{"kernel_shape", std::vector<std::int64_t>{1, 1}}});
}

std::string Builder::constant(std::vector<std::int64_t> values) {
  std::string name = next_name("constant");
  std::vector<std::int64_t> dims{static_cast<std::int64_t>(values.size())};
  model_.initializers.push_back({name, std::move(dims), std::move(values)});
  return name;
}

const std::string& Builder::name_of(graph::TensorId id) const {
  const auto found = names_.find(id);
  LANTERN_ASSERT(found != names_.end(), "a tensor is exported before its readers");
  return found->second;
}

std::span<const float> Builder::parameter(graph::TensorId id) const {
  const auto found = parameters_.find(id);
  LANTERN_ASSERT(found != parameters_.end(), "every parameter has its values");
  return found->second;
}

std::string Builder::parameter_constant(graph::TensorId id, std::vector<std::int64_t> dims) {
  const std::span<const float> values = parameter(id);
  std::string name = lowered_.graph.tensor(id).name;
  if (used_[name]++ > 0) return name;  // share_index
  take_room(static_cast<std::int64_t>(values.size()));
  model_.initializers.push_back(
      {name, std::move(dims), std::vector<float>(values.begin(), values.end())});
  return name;
}

void Builder::check_room(std::int64_t floats) const {
  if (floats * Bytes{sizeof(float)} <= room_) return;
  throw Error(ErrorCode::kInvalidConfig, network_.path,
              "error: its constants are more than an ONNX file holds (2 GiB)");
}

void Builder::take_room(std::int64_t floats) {
  check_room(floats);
  room_ -= floats * Bytes{sizeof(float)};
}

void Builder::refuse(const graph::Op& op, const std::string& why) const {
  const layers::Layer& layer = network_.layers[static_cast<std::size_t>(op.layer)];
  throw Error(ErrorCode::kInvalidConfig, layer.where, "error: [{}] cannot be exported to ONNX: {}",
              layer.section, why);
}

}  // namespace lantern::io::onnx
