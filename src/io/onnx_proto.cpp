#include "io/onnx_proto.hpp"

#include <bit>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace lantern::io::onnx {

namespace {

// Wire types of protobuf.
constexpr std::uint64_t kVarint = 0, kBytes = 2, kFixed32 = 5;

class Message {
 public:
  void integer(int field, std::int64_t value) {
    tag(field, kVarint);
    varint(static_cast<std::uint64_t>(value));
  }
  void real(int field, float value) {
    tag(field, kFixed32);
    append(&value, sizeof(value));
  }
  void text(int field, std::string_view value) {
    tag(field, kBytes);
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const Message& value) { text(field, value.bytes_); }
  std::string take() { return std::move(bytes_); }
  std::size_t size() const { return bytes_.size(); }

 private:
  void tag(int field, std::uint64_t type) { varint(static_cast<std::uint64_t>(field) << 3 | type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void append(const void* data, std::size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  std::string bytes_;
};

// TensorProto.DataType
constexpr std::int64_t kFloat = 1, kInt64 = 7;
// AttributeProto.AttributeType, by the alternatives of AttributeValue
constexpr std::int64_t kAttributeTypes[] = {2 /*INT*/, 1 /*FLOAT*/, 3 /*STRING*/, 7 /*INTS*/};

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

Message tensor_message(const Tensor& tensor) {  // TensorProto
  Message m;
  for (const std::int64_t dim : tensor.dims) m.integer(1, dim);
  m.integer(2, tensor.values.index() == 0 ? kFloat : kInt64);
  m.text(8, tensor.name);
  std::visit(
      [&](const auto& values) {
        m.text(9, {reinterpret_cast<const char*>(values.data()),
                   values.size() * sizeof(values[0])});  // raw_data
      },
      tensor.values);
  return m;
}

Message attribute_message(const std::string& name, const AttributeValue& value) {
  Message m;  // AttributeProto
  m.text(1, name);
  if (const auto* i = std::get_if<std::int64_t>(&value)) m.integer(3, *i);
  if (const auto* f = std::get_if<float>(&value)) m.real(2, *f);
  if (const auto* s = std::get_if<std::string>(&value)) m.text(4, *s);
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value)) {
    for (const std::int64_t i : *ints) m.integer(8, i);
  }
  m.integer(20, kAttributeTypes[value.index()]);
  return m;
}

Message node_message(const Node& node) {  // NodeProto
  Message m;
  for (const std::string& input : node.inputs) m.text(1, input);
  for (const std::string& output : node.outputs) m.text(2, output);
  m.text(3, node.name);
  m.text(4, node.op);
  for (const auto& [name, value] : node.attributes) m.message(5, attribute_message(name, value));
  return m;
}

Message value_message(const Value& value) {
  Message shape;  // TensorShapeProto
  for (const std::int64_t dim : value.dims) {
    Message dimension;
    dimension.integer(1, dim);
    shape.message(1, dimension);
  }
  Message tensor;  // TypeProto.Tensor
  tensor.integer(1, kFloat);
  tensor.message(2, shape);
  Message type;  // TypeProto
  type.message(1, tensor);
  Message m;  // ValueInfoProto
  m.text(1, value.name);
  m.message(2, type);
  return m;
}

}  // namespace

std::string serialize(const Model& model) {
  Message graph;  // GraphProto
  for (const Node& node : model.nodes) graph.message(1, node_message(node));
  graph.text(2, model.graph_name);
  for (const Tensor& tensor : model.initializers) graph.message(5, tensor_message(tensor));
  for (const Value& value : model.inputs) graph.message(11, value_message(value));
  for (const Value& value : model.outputs) graph.message(12, value_message(value));
  if (std::cmp_greater(graph.size(), kLargestFile)) {
    throw Error(ErrorCode::kInvalidConfig, model.graph_name,
                "error: {} bytes are more than an ONNX file holds (2 GiB)", graph.size());
  }
  Message opset;  // OperatorSetIdProto, of the default domain
  opset.text(1, "");
  opset.integer(2, kOpset);
  Message m;  // ModelProto
  m.integer(1, kIrVersion);
  m.text(2, "lantern");
  m.text(3, model.producer_version);
  m.message(7, graph);
  m.message(8, opset);
  for (const auto& [key, value] : model.metadata) {
    Message entry;  // StringStringEntryProto
    entry.text(1, key);
    entry.text(2, value);
    m.message(14, entry);
  }
  return m.take();
}

}  // namespace lantern::io::onnx
