#include "cli/graph_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "draw/flow_chart.hpp"

namespace lantern::cli {

namespace {

using graph::Graph;
using graph::Op;
using graph::TensorId;

std::string section_of(const layers::Network& network, const Op& op) {
  return op.layer < 0 ? std::string() : network.layers[static_cast<std::size_t>(op.layer)].section;
}

std::string title_of(const layers::Network& network, const Op& op) {
  return op.layer < 0 ? std::string(op.def->name)
                      : fmt::format("{} {}: {}", op.layer, section_of(network, op), op.def->name);
}

std::string detail_of(const Graph& graph, const Op& op) {
  if (op.outputs.empty()) return {};
  const graph::TensorType& type = graph.type(op.outputs[0]);
  return fmt::format("{}{}", to_string(type.dtype), type.shape.to_string());
}

// Ops and the inputs of the network as boxes, each with the boxes whose data it reads. Parameters
// and what else lives on are no boxes.
std::vector<draw::FlowNode> boxes_of(const layers::Network& network, const Graph& graph) {
  std::vector<draw::FlowNode> nodes;
  std::map<TensorId, std::size_t> made_by;
  std::map<std::string_view, int> colors;  // by op kind
  const auto color_of = [&](std::string_view kind) {
    return colors.emplace(kind, static_cast<int>(colors.size())).first->second;
  };
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const graph::Tensor& tensor = graph.tensors()[i];
    if (tensor.role != graph::Role::kInput) continue;
    made_by[TensorId{static_cast<std::uint32_t>(i)}] = nodes.size();
    nodes.push_back(
        {.title = tensor.name,
         .detail = fmt::format("{}{}", to_string(tensor.type.dtype), tensor.type.shape.to_string()),
         .color = color_of("input"),
         .inputs = {}});
  }
  for (const Op& op : graph.ops()) {
    draw::FlowNode node{.title = title_of(network, op),
                        .detail = detail_of(graph, op),
                        .color = color_of(op.def->name),
                        .inputs = {}};
    for (const TensorId input : op.inputs) {
      const auto source = made_by.find(input);
      if (source == made_by.end()) continue;
      if (std::ranges::count(node.inputs, source->second) == 0) {
        node.inputs.push_back(source->second);
      }
    }
    for (const TensorId output : op.outputs) made_by[output] = nodes.size();
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::string name_of(const layers::Network& network) {
  return std::filesystem::path(network.path).filename().string();
}

std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return '"' + out + '"';
}

}  // namespace

std::string graph_json(const layers::Network& network, const Graph& graph) {
  nlohmann::ordered_json document{{"schema", 1}, {"network", name_of(network)}};
  auto& tensors = document["tensors"] = nlohmann::ordered_json::array();
  for (const graph::Tensor& tensor : graph.tensors()) {
    nlohmann::ordered_json shape = nlohmann::ordered_json::array();
    for (int i = 0; i < tensor.type.shape.rank(); ++i) shape.push_back(tensor.type.shape[i]);
    tensors.push_back({{"name", tensor.name},
                       {"role", to_string(tensor.role)},
                       {"dtype", to_string(tensor.type.dtype)},
                       {"shape", std::move(shape)}});
  }
  auto& ops = document["ops"] = nlohmann::ordered_json::array();
  for (const Op& op : graph.ops()) {
    const auto names = [&](const std::vector<TensorId>& ids) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const TensorId id : ids) list.push_back(graph.tensor(id).name);
      return list;
    };
    ops.push_back({{"op", op.def->name},
                   {"program", to_string(op.program)},
                   {"layer", op.layer},
                   {"section", section_of(network, op)},
                   {"inputs", names(op.inputs)},
                   {"outputs", names(op.outputs)},
                   {"params", op.params ? op.params->describe() : std::string()}});
  }
  // Names may hold bytes that are no UTF-8: they become U+FFFD.
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string graph_dot(const layers::Network& network, const Graph& graph) {
  const std::vector<draw::FlowNode> nodes = boxes_of(network, graph);
  std::string text =
      fmt::format("digraph {} {{\n  node [shape=box, style=filled, colorscheme=pastel28];\n",
                  quoted(name_of(network)));
  constexpr int kColors = 8;  // of the scheme
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    text +=
        fmt::format("  n{} [label={}, fillcolor={}];\n", i,
                    quoted(nodes[i].title + "\n" + nodes[i].detail), nodes[i].color % kColors + 1);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::size_t input : nodes[i].inputs)
      text += fmt::format("  n{} -> n{};\n", input, i);
  }
  return text + "}\n";
}

std::string graph_svg(const layers::Network& network, const Graph& graph) {
  return draw::flow_chart_svg(name_of(network), boxes_of(network, graph));
}

}  // namespace lantern::cli
