#include "io/onnx_export.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "io/fold.hpp"
#include "io/model_weights.hpp"
#include "io/onnx_builder.hpp"
#include "ops/gaussian_yolo/gaussian_yolo.hpp"
#include "ops/region/region.hpp"
#include "ops/yolo_loss/yolo_op.hpp"

namespace lantern::io {

namespace {

using onnx::Builder;

void read_parameters(Builder& b, const std::filesystem::path& path, Diagnostics& warnings) {
  const WeightsLayout layout = weights_layout(b.network());
  Weights weights = read_weights(path, layout, Purpose::kEvaluation, warnings);
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (std::ranges::binary_search(b.lowered().folded, layout[i].layer)) {
      fold_batch_norm(layout[i], weights.values[i]);
    }
  }
  for (const layers::ParameterBinding& binding : b.lowered().parameters) {
    // What the file does not have (dontload, dontloadscales) is as in a network that was just made.
    const auto count =
        static_cast<std::size_t>(b.lowered().graph.type(binding.tensor).shape.elements());
    std::vector<float> values(count, binding.array == kScales ? 1.0F : 0.0F);
    for (std::size_t i = 0; i < layout.size(); ++i) {
      if (layout[i].layer != binding.layer) continue;
      for (std::size_t k = 0; k < layout[i].arrays.size(); ++k) {
        if (layout[i].arrays[k].name == binding.array && !weights.values[i][k].empty()) {
          values = std::move(weights.values[i][k]);
        }
      }
    }
    b.set_parameter(binding.tensor, std::move(values));
  }
}

std::vector<std::int64_t> dims_of(const Shape& shape) {
  std::vector<std::int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape[i]);
  return dims;
}

// An output has a name of its own: its value passes through one last node.
void set_output(Builder& b, const std::string& value, const std::string& name,
                std::vector<std::int64_t> dims) {
  b.model().nodes.push_back(
      {.op = "Identity", .name = name, .inputs = {value}, .outputs = {name}, .attributes = {}});
  b.model().outputs.push_back({name, std::move(dims)});
}

const layers::HeadBinding* head_of(const layers::Lowered& lowered, const graph::Op& op) {
  const auto found = std::ranges::find_if(
      lowered.heads, [&](const layers::HeadBinding& head) { return head.output == op.outputs[0]; });
  return found == lowered.heads.end() ? nullptr : &*found;
}

int classes_of(const layers::HeadBinding& head) {
  if (head.region) return head.region->classes;
  return head.gaussian ? head.gaussian->yolo.classes : head.yolo.classes;
}

// Values of one box in the raw output.
std::int64_t entries_of(const layers::HeadBinding& head) {
  if (head.region) return head.region->entries();
  return classes_of(head) + (head.gaussian ? std::int64_t{9} : std::int64_t{5});
}

// What a reader of a raw output needs to decode it: "kind=yolo stride_w=32 anchors=81,82,... ".
std::string head_text(const layers::Network& network, const layers::HeadBinding& head) {
  const layers::Layer& layer = network.layers[static_cast<std::size_t>(head.layer)];
  const bool region = head.region != nullptr;
  const ops::YoloParams& yolo = head.gaussian ? head.gaussian->yolo : head.yolo;
  std::vector<float> anchors;
  if (region) {
    anchors = head.region->anchors;
  } else {
    for (const int index : yolo.mask) {
      anchors.push_back(yolo.anchors[static_cast<std::size_t>(2 * index)]);
      anchors.push_back(yolo.anchors[static_cast<std::size_t>(2 * index + 1)]);
    }
  }
  std::string text =
      fmt::format("layer={} kind={} classes={} grid={}x{} anchors={}", head.layer, layer.section,
                  classes_of(head), layer.out.w, layer.out.h, fmt::join(anchors, ","));
  if (region) {
    return text + fmt::format(" coords={} softmax={} tree={}", head.region->coords,
                              head.region->softmax ? 1 : 0, head.region->tree ? 1 : 0);
  }
  return text + fmt::format(" scale_x_y={} new_coords={}", yolo.scale_x_y, yolo.new_coords ? 1 : 0);
}

void set_metadata(Builder& b) {
  const OnnxOptions& options = b.options();
  auto& metadata = b.model().metadata;
  const layers::Dims in = b.network().input();
  metadata.emplace_back("width", std::to_string(in.w));
  metadata.emplace_back("height", std::to_string(in.h));
  metadata.emplace_back("channels", std::to_string(in.c));
  std::string names;
  for (const std::string& name : options.names) names += (names.empty() ? "" : "\n") + name;
  if (!names.empty()) metadata.emplace_back("names", names);
  const auto& heads = b.lowered().heads;
  const std::int64_t classes =
      heads.empty() ? b.network().layers.back().out.elements() : classes_of(heads.front());
  if (!options.names.empty() && std::cmp_not_equal(options.names.size(), classes)) {
    throw Error(ErrorCode::kInvalidData, "names", "there are {}, the network has {} classes",
                options.names.size(), classes);
  }
  if (heads.empty()) return;
  metadata.emplace_back("classes", std::to_string(classes));
  metadata.emplace_back("heads", options.heads == OnnxHeads::kRaw ? "raw" : "decoded");
  for (std::size_t i = 0; i < heads.size(); ++i) {
    metadata.emplace_back(fmt::format("head{}", i), head_text(b.network(), heads[i]));
  }
}

// Decoded heads as two outputs: all boxes and all scores, head by head.
void join_heads(Builder& b, std::vector<onnx::HeadValues> heads, std::int64_t boxes, int classes) {
  b.set_layer(-1);
  std::vector<std::string> all_boxes, all_scores;
  for (onnx::HeadValues& head : heads) {
    all_boxes.push_back(std::move(head.boxes));
    all_scores.push_back(std::move(head.scores));
  }
  const auto joined = [&](std::vector<std::string> parts) {
    if (parts.size() == 1) return parts[0];
    return b.node("Concat", std::move(parts), {{"axis", std::int64_t{1}}});
  };
  set_output(b, joined(std::move(all_boxes)), "boxes", {b.options().batch, boxes, 4});
  set_output(b, joined(std::move(all_scores)), "scores", {b.options().batch, boxes, classes});
}

void write_nodes(Builder& b) {
  const layers::Lowered& lowered = b.lowered();
  std::vector<onnx::HeadValues> decoded;
  std::int64_t boxes = 0;
  for (const graph::Op& op : lowered.graph.ops()) {
    if (op.program != graph::ProgramKind::kForward) continue;
    const layers::HeadBinding* head = head_of(lowered, op);
    if (head == nullptr) {
      onnx::op_nodes(b, op);
      continue;
    }
    if (op.def != &ops::kYoloForward && op.def != &ops::kGaussianForward &&
        op.def != &ops::kRegionForward) {
      b.refuse(op, "the export knows [yolo], [Gaussian_yolo] and [region]");
    }
    for (const graph::Op& other : lowered.graph.ops()) {
      if (std::ranges::count(other.inputs, op.outputs[0]) != 0) {
        b.refuse(other, fmt::format("it reads the detection layer {}", op.layer));
      }
    }
    const std::string& raw = b.name_of(op.inputs[0]);
    const Shape& shape = b.shape(op.inputs[0]);
    if (b.options().heads == OnnxHeads::kRaw) {
      set_output(b, raw, fmt::format("head{}", b.model().outputs.size()), dims_of(shape));
    } else {
      if (head->region && head->region->tree) {
        b.refuse(op,
                 "decoding the classes of a tree= has no form here; -heads raw gives its values");
      }
      decoded.push_back(onnx::head_nodes(b, *head, raw, shape));
      boxes += shape.elements() / shape.n() / entries_of(*head);
    }
  }
  if (!decoded.empty()) {
    join_heads(b, std::move(decoded), boxes, classes_of(lowered.heads.front()));
  } else if (lowered.heads.empty()) {
    const graph::TensorId last = *lowered.forward_outputs.back();
    b.set_layer(-1);
    set_output(b, b.name_of(last), "output", dims_of(b.shape(last)));
  }
}

}  // namespace

std::string export_onnx(const layers::Network& network, const std::filesystem::path& weights,
                        const OnnxOptions& options, Diagnostics& warnings) {
  const layers::Lowered lowered = layers::lower(
      network,
      {.forward_batch = options.batch, .fuse_layers = false, .fold = options.fold_batch_norm});
  Builder builder(network, lowered, options);
  read_parameters(builder, weights, warnings);
  builder.model().graph_name = std::filesystem::path(network.path).stem().string();
  builder.model().producer_version = options.producer_version;
  builder.model().inputs.push_back(
      {"images", dims_of(lowered.graph.type(*lowered.forward_images).shape)});
  builder.set_name(*lowered.forward_images, "images");
  write_nodes(builder);
  set_metadata(builder);
  return onnx::serialize(builder.model());
}

}  // namespace lantern::io
