// Darknet's table of layers (layers.md 9): width and height come first, channels last.
#include <algorithm>
#include <array>

#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

std::string dims_text(const Dims& d) { return fmt::format("{:4} x{:4} x{:4}", d.w, d.h, d.c); }

std::string filters_text(std::int64_t filters, std::int64_t groups) {
  return groups > 1 ? fmt::format("{:5}/{:4} ", filters, groups)
                    : fmt::format("{:5}      ", filters);
}

std::string kernel_text(std::string_view gap, int size, int stride_x, int stride_y, int dilation) {
  if (stride_x != stride_y)
    return fmt::format("{0:2}x{0:2}/{1:2}x{2:2} ", size, stride_x, stride_y);
  if (dilation > 1) return fmt::format("{0:2}{1}x{0:2}/{2:2}({3})", size, gap, stride_x, dilation);
  return fmt::format("{0:2}{1}x{0:2}/{2:2}   ", size, gap, stride_x);
}

std::string map_text(const Dims& in, const Dims& out, double bflops) {
  return fmt::format("{} -> {} {:.3f} BF\n", dims_text(in), dims_text(out), bflops);
}

std::string vector_row(std::string_view name, std::int64_t in, std::int64_t out) {
  return fmt::format("{:<37}{:4}  ->  {:4}\n", name, in, out);
}

// The blur behind a layer with antialiasing.
std::string blur_row(const Dims& before, const Dims& after, int antialiasing, int stride_x,
                     int stride_y) {
  const int size = antialiasing == 2 ? 2 : 3;
  const double bflops = 2.0 * size * size * static_cast<double>(after.elements()) / 1e9;
  return "  AA:  " + std::string("conv ") + filters_text(before.c, before.c) +
         kernel_text(" ", size, stride_x, stride_y, 1) + map_text(before, after, bflops);
}

class Row {
 public:
  Row(const Network& network, const Layer& layer) : network_(network), layer_(layer) {}

  std::string operator()(const ConvolutionalSpec& s) const {
    const std::string_view tag = s.xnor != 0 && s.bin_output != 0 ? "convXB"
                                 : s.xnor != 0                    ? "convX "
                                 : s.share_index                  ? "convS "
                                 : s.assisted_excitation != 0     ? "convAE"
                                                                  : "conv  ";
    const bool blurs = s.antialiasing != 0;
    const Dims plain{layer_.in.w + 2 * s.padding - s.size + 1,
                     layer_.in.h + 2 * s.padding - s.size + 1, s.filters};
    const std::string row = fmt::format(
        "{}{}{}{}", tag, filters_text(s.filters, s.groups),
        kernel_text(" ", s.size, blurs ? 1 : s.stride_x, blurs ? 1 : s.stride_y, s.dilation),
        map_text(layer_.in, blurs ? plain : layer_.out, layer_.bflops));
    return blurs ? row + blur_row(plain, layer_.out, s.antialiasing, s.stride_x, s.stride_y) : row;
  }
  std::string operator()(const MaxpoolSpec& s) const {
    if (s.maxpool_depth != 0) {
      return "max-depth         " + kernel_text("", s.size, s.stride_x, s.stride_y, 1) + map();
    }
    if (s.antialiasing == 0) return pool("max", s.size, s.stride_x, s.stride_y);
    const Dims plain = pooled(layer_.in, s.size, s.padding, 1, 1);
    return fmt::format("{:<18}{}{}", "max", kernel_text("", s.size, 1, 1, 1),
                       map_text(layer_.in, plain, layer_.bflops)) +
           blur_row(plain, layer_.out, s.antialiasing, s.stride_x, s.stride_y);
  }
  std::string operator()(const LocalAvgpoolSpec& s) const {
    return pool("avg", s.size, s.stride_x, s.stride_y);
  }
  std::string operator()(const AvgpoolSpec&) const {
    return fmt::format("avg                          {} -> {:6}\n", dims_text(layer_.in),
                       layer_.in.c);
  }
  std::string operator()(const RouteSpec& s) const {
    std::string sources;
    for (const int index : layer_.sources) sources += fmt::format(" {}", index);
    const std::string part =
        s.groups > 1 ? fmt::format("{}/{}", s.group_id, s.groups) : std::string();
    return fmt::format("route {:<32} {:>6} -> {}\n", sources, part, dims_text(layer_.out));
  }
  std::string operator()(const ShortcutSpec& s) const {
    std::string sources, mismatches;
    for (const int index : layer_.sources) {
      sources += fmt::format("{}, ", index);
      const Dims& from = network_.layers[static_cast<std::size_t>(index)].out;
      if (from != layer_.out)
        mismatches += fmt::format(" ({} x {} x {}) + ({} x {} x {})\n", layer_.out.w, layer_.out.h,
                                  layer_.out.c, from.w, from.h, from.c);
    }
    return fmt::format("Shortcut Layer: {} wt = {}, wn = {}, outputs:{} {:.3f} BF\n{}", sources,
                       static_cast<int>(s.weights_type), static_cast<int>(s.weights_normalization),
                       dims_text(layer_.out), layer_.bflops, mismatches);
  }
  std::string operator()(const ScaleChannelsSpec&) const { return source("scale"); }
  std::string operator()(const SamSpec&) const { return source("sam"); }
  std::string operator()(const UpsampleSpec& s) const {
    const std::string factor =
        s.stride > 0 ? fmt::format("{:2}x", s.stride) : fmt::format("1/{}x", -s.stride);
    return fmt::format("{:<24}{:>3}  {} -> {}\n", s.stride > 0 ? "upsample" : "downsample", factor,
                       dims_text(layer_.in), dims_text(layer_.out));
  }
  std::string operator()(const Reorg3dSpec& s) const { return reorg("reorg3d", s.stride); }
  std::string operator()(const ReorgSpec& s) const { return reorg("reorg", s.stride); }
  std::string operator()(const DropoutSpec& s) const {
    const std::string block = s.dropblock != 0 ? "dropblock " : "dropout   ";
    return fmt::format("{} p = {:.3f}        {:4}  ->   {:4}\n", block, s.probability,
                       layer_.in.elements(), layer_.out.elements());
  }
  std::string operator()(const BatchnormSpec&) const {
    return shape_row("Batch Normalization Layer");
  }
  std::string operator()(const ConnectedSpec&) const { return vectors("connected"); }
  std::string operator()(const ActivationSpec& s) const {
    return fmt::format("Activation Layer: {} inputs, {}\n", layer_.in.elements(),
                       ops::to_string(s.activation));
  }
  std::string operator()(const SoftmaxSpec&) const {
    return fmt::format("{:<47}{:4}\n", "softmax", layer_.out.elements());
  }
  std::string operator()(const CostSpec&) const {
    return fmt::format("{:<47}{:4}\n", "cost", layer_.out.elements());
  }
  std::string operator()(const CropSpec&) const {
    return "Crop Layer                   " + plain_map();
  }
  std::string operator()(const NormalizationSpec&) const {
    return shape_row("Local Response Normalization Layer");
  }
  std::string operator()(const LocalSpec& s) const {
    return fmt::format("local {}{}{} -> {}\n", filters_text(s.filters, 1),
                       kernel_text(" ", s.size, s.stride, s.stride, 1), dims_text(layer_.in),
                       dims_text(layer_.out));
  }
  std::string operator()(const RnnSpec&) const { return vectors("rnn"); }
  std::string operator()(const GruSpec&) const { return vectors("gru"); }
  std::string operator()(const LstmSpec&) const { return vectors("lstm"); }
  std::string operator()(const CrnnSpec& s) const {
    return fmt::format("crnn  {}{}{}", filters_text(s.hidden, s.groups),
                       kernel_text(" ", s.size, s.stride, s.stride, s.dilation), map());
  }
  std::string operator()(const ConvLstmSpec& s) const {
    return fmt::format("clstm {}{}{}", filters_text(s.output, s.groups),
                       kernel_text(" ", s.size, s.stride, s.stride, s.dilation), map());
  }
  std::string operator()(const HistorySpec&) const {
    return "history                      " + plain_map();
  }
  std::string operator()(const ImplicitSpec&) const { return shape_row("implicit"); }
  std::string operator()(const EmptySpec&) const { return "empty\n"; }
  std::string operator()(const YoloSpec& s) const { return "yolo\n" + head("[yolo]", s); }
  std::string operator()(const GaussianYoloSpec& s) const { return head("[Gaussian_yolo]", s); }
  std::string operator()(const RegionSpec&) const { return "detection\n"; }
  std::string operator()(const DetectionSpec&) const { return "Detection Layer\n"; }
  std::string operator()(const ContrastiveSpec&) const {
    return fmt::format("contrastive                  {}\n", dims_text(layer_.in));
  }

 private:
  std::string map() const { return map_text(layer_.in, layer_.out, layer_.bflops); }
  std::string plain_map() const {
    return fmt::format("{} -> {}\n", dims_text(layer_.in), dims_text(layer_.out));
  }
  std::string pool(std::string_view name, int size, int stride_x, int stride_y) const {
    return fmt::format("{:<18}{}{}", name, kernel_text("", size, stride_x, stride_y, 1), map());
  }
  std::string source(std::string_view name) const {
    return fmt::format("{} Layer: {}\n", name, layer_.sources.front());
  }
  std::string reorg(std::string_view name, int stride) const {
    return fmt::format("{:<24} /{:2} {}", name, stride, plain_map());
  }
  std::string vectors(std::string_view name) const {
    return vector_row(name, layer_.in.elements(), layer_.out.elements());
  }
  std::string shape_row(std::string_view name) const {
    return fmt::format("{}: {}\n", name, dims_text(layer_.out));
  }
  static std::string head(std::string_view name, const HeadSpec& s) {
    constexpr std::array<std::string_view, 5> kNames{"iou", "giou", "mse", "diou", "ciou"};
    const auto loss = static_cast<std::size_t>(s.iou_loss);
    return fmt::format(
        "{} params: iou loss: {} ({}), iou_norm: {:2.2f}, obj_norm: {:2.2f}, cls_norm: {:2.2f}, "
        "delta_norm: {:2.2f}, scale_x_y: {:2.2f}\n",
        name, kNames[loss], loss, s.iou_normalizer, s.obj_normalizer, s.cls_normalizer,
        s.delta_normalizer, s.scale_x_y);
  }

  const Network& network_;
  const Layer& layer_;
};

// Side of the input square that one output cell of a layer sees, and the step between neighbours.
struct Field {
  double w = 1, h = 1, step_x = 1, step_y = 1;
};

void widen(Field& field, int size, int dilation, int stride_x, int stride_y) {
  const double reach = size + 2.0 * (dilation - 1) - 1;  // Darknet's rule
  field.w += reach * field.step_x;
  field.h += reach * field.step_y;
  field.step_x *= stride_x;
  field.step_y *= stride_y;
}

Field field_of(const Layer& layer, const std::vector<Field>& fields) {
  Field field = layer.index == 0 ? Field{} : fields.back();
  if (const auto* conv = std::get_if<ConvolutionalSpec>(&layer.spec)) {
    widen(field, conv->size, conv->dilation, conv->stride_x, conv->stride_y);
  } else if (const auto* max = std::get_if<MaxpoolSpec>(&layer.spec)) {
    widen(field, max->size, 1, max->stride_x, max->stride_y);
  } else if (const auto* avg = std::get_if<LocalAvgpoolSpec>(&layer.spec)) {
    widen(field, avg->size, 1, avg->stride_x, avg->stride_y);
  } else if (std::holds_alternative<UpsampleSpec>(layer.spec) ||
             std::holds_alternative<Reorg3dSpec>(layer.spec)) {
    const auto* up = std::get_if<UpsampleSpec>(&layer.spec);
    const int stride = up != nullptr ? up->stride : std::get<Reorg3dSpec>(layer.spec).stride;
    field.step_x /= stride;
    field.step_y /= stride;
  } else if (std::holds_alternative<RouteSpec>(layer.spec)) {
    field = fields[static_cast<std::size_t>(layer.sources.front())];
    for (const int index : layer.sources) {
      const Field& other = fields[static_cast<std::size_t>(index)];
      field.w = std::max(field.w, other.w);
      field.h = std::max(field.h, other.h);
      field.step_x = std::max(field.step_x, other.step_x);
      field.step_y = std::max(field.step_y, other.step_y);
    }
  }
  return field;
}

}  // namespace

std::string layer_table(const Network& network) {
  std::string out = "   layer   filters  size/strd(dil)      input                output\n";
  std::vector<Field> fields;
  for (const Layer& layer : network.layers) {
    out += fmt::format("{:4} ", layer.index) + std::visit(Row(network, layer), layer.spec);
    if (network.net.show_receptive_field == 0) continue;
    fields.push_back(field_of(layer, fields));
    out += fmt::format("{:4} - receptive field: {:.0f} x {:.0f}\n", layer.index, fields.back().w,
                       fields.back().h);
  }
  out += fmt::format("Total BFLOPS {:5.3f} \navg_outputs = {} \n", network.bflops(),
                     network.average_outputs());
  return out;
}

}  // namespace lantern::layers
