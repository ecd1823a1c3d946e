#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// The part of the ONNX format that the export writes: messages and field numbers of onnx.proto3,
// release 1.8 (opset 13, IR version 7), in the protobuf wire format. About a dozen fields of five
// messages, which is why no protobuf library stands behind this.
namespace lantern::io::onnx {

inline constexpr int kOpset = 13;
inline constexpr int kIrVersion = 7;
/// Bytes that protobuf can hold.
inline constexpr std::int64_t kLargestFile = (std::int64_t{1} << 31) - (std::int64_t{1} << 20);

struct Tensor {
  std::string name;
  std::vector<std::int64_t> dims;
  std::variant<std::vector<float>, std::vector<std::int64_t>> values;
};

using AttributeValue = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>>;

struct Node {
  std::string op;  ///< "Conv"
  std::string name;
  std::vector<std::string> inputs, outputs;
  std::vector<std::pair<std::string, AttributeValue>> attributes;
};

/// An f32 input or output of the graph.
struct Value {
  std::string name;
  std::vector<std::int64_t> dims;
};

struct Model {
  std::string producer_version, graph_name;
  std::vector<Node> nodes;  ///< in execution order
  std::vector<Tensor> initializers;
  std::vector<Value> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// The bytes of the file. Throws kInvalidConfig beyond 2 GiB, which protobuf cannot hold.
std::string serialize(const Model& model);

}  // namespace lantern::io::onnx
