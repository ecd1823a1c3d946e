#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "io/onnx_export.hpp"
#include "io/onnx_proto.hpp"
#include "layers/lower.hpp"

// How the ops of a forward program become nodes; used by the export only.
namespace lantern::io::onnx {

/// Collects nodes and constants. A value is known by its ONNX name.
class Builder {
 public:
  Builder(const layers::Network& network, const layers::Lowered& lowered,
          const OnnxOptions& options)
      : network_(network), lowered_(lowered), options_(options) {}

  const layers::Network& network() const { return network_; }
  const layers::Lowered& lowered() const { return lowered_; }
  const OnnxOptions& options() const { return options_; }
  Model& model() { return model_; }

  const Shape& shape(graph::TensorId id) const { return lowered_.graph.type(id).shape; }

  /// Appends a node with one output, whose name it gives.
  std::string node(const std::string& op, std::vector<std::string> inputs,
                   std::vector<std::pair<std::string, AttributeValue>> attributes = {});
  std::string constant(std::vector<std::int64_t> dims, std::vector<float> values);
  std::string constant(std::vector<std::int64_t> values);  ///< a vector of integers
  std::string scalar(float value) { return constant({}, {value}); }

  // Common nodes.
  std::string reshape(const std::string& x, std::vector<std::int64_t> dims) {
    return node("Reshape", {x, constant(std::move(dims))});
  }
  std::string transpose(const std::string& x, std::vector<std::int64_t> order) {
    return node("Transpose", {x}, {{"perm", std::move(order)}});
  }
  /// Channels [first, first + count) of axis 1.
  std::string slice(const std::string& x, std::int64_t first, std::int64_t count) {
    return node("Slice", {x, constant({first}), constant({first + count}), constant({1})});
  }
  std::string add(const std::string& a, const std::string& b) { return node("Add", {a, b}); }
  std::string mul(const std::string& a, const std::string& b) { return node("Mul", {a, b}); }
  std::string scaled(const std::string& x, float by) { return by == 1 ? x : mul(x, scalar(by)); }
  /// x [N, 1, H, W] in each of `channels` channels, as a convolution with ones: what every reader
  /// knows, where broadcasting between two maps is not.
  std::string spread(const std::string& x, std::int64_t channels);
  std::string clip(const std::string& x, float low, float high) {
    return node("Clip", {x, scalar(low), scalar(high)});
  }

  /// ONNX name of a tensor of the graph; an internal error when nothing has given it one.
  const std::string& name_of(graph::TensorId id) const;
  void set_name(graph::TensorId id, std::string name) { names_[id] = std::move(name); }

  /// Values of a parameter, as read from the weights file.
  std::span<const float> parameter(graph::TensorId id) const;
  void set_parameter(graph::TensorId id, std::vector<float> values) {
    parameters_[id] = std::move(values);
  }
  /// A parameter as a constant of the file, which layers may share.
  std::string parameter_constant(graph::TensorId id, std::vector<std::int64_t> dims);

  /// Refuses the network when so many floats more do not fit into the file.
  void check_room(std::int64_t floats) const;
  /// Refuses the layer of an op by name.
  [[noreturn]] void refuse(const graph::Op& op, const std::string& why) const;

  /// Names of the nodes of an op start with the layer's.
  void set_layer(int layer) { layer_ = layer; }

 private:
  std::string next_name(const std::string& op);
  void take_room(std::int64_t floats);
  const layers::Network& network_;
  const layers::Lowered& lowered_;
  const OnnxOptions& options_;
  Model model_;
  int layer_ = -1;
  std::map<std::string, int> used_;
  Bytes room_ = kLargestFile;
  std::map<graph::TensorId, std::string> names_;
  std::map<graph::TensorId, std::vector<float>> parameters_;
};

/// y = act(x) of any activation; x [N, channels, H, W].
std::string activation_nodes(Builder& builder, const std::string& x, ops::Activation activation,
                             std::int64_t channels);

/// Appends the nodes of one op of the forward program that is no detection head; refuses what has
/// no form.
void op_nodes(Builder& builder, const graph::Op& op);

/// Boxes [N, B, 4] and scores [N, B, classes] of one head. `raw` is what feeds it.
struct HeadValues {
  std::string boxes, scores;
};
HeadValues head_nodes(Builder& builder, const layers::HeadBinding& head, const std::string& raw,
                      const Shape& shape);

}  // namespace lantern::io::onnx
