#include "layers/network.hpp"

#include <algorithm>

#include "core/file.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "layers/layer_def.hpp"
#include "layers/net.hpp"

namespace lantern::layers {
namespace {

bool is_known(const Dims& dims) { return dims.w > 0; }

// A layer number to an absolute index in [0, layer.index), or nothing and a message.
std::optional<int> resolve(ShapeContext& context, const Layer& layer, const Reference& reference) {
  const std::int64_t index = reference.value < 0 ? std::int64_t{layer.index} + reference.value
                                                 : std::int64_t{reference.value};
  if (index >= 0 && index < layer.index) return static_cast<int>(index);
  const std::string range =
      layer.index == 0 ? std::string("there is no earlier layer")
                       : fmt::format("want 0..{} or -{}..-1", layer.index - 1, layer.index);
  context.error(layer, reference.key,
                "{}={} in layer {} means layer {}, which is not an earlier layer; {}",
                reference.key, reference.value, layer.index, index, range);
  return std::nullopt;
}

void shape_layer(ShapeContext& context, Layer& layer, const Dims& previous) {
  layer.in = previous;
  layer.out = {};
  layer.bflops = 0;
  layer.parameters = 0;
  layer.sources.clear();
  if (context.is_broken(layer)) return;
  const LayerDef& def = *layer_defs()[layer.spec.index()];
  bool known = is_known(previous) || def.ignores_input;
  if (def.references != nullptr) {
    std::vector<Reference> references;
    def.references(layer.spec, references);
    for (const Reference& reference : references) {
      const auto source = resolve(context, layer, reference);
      if (source) layer.sources.push_back(*source);
      known = known && source && is_known(context.layer(*source).out);
    }
  }
  if (!known) return;
  def.shape(context, layer);
  const Dims& out = layer.out;
  if (!is_known(out)) return;
  // Each extent first: their product could overflow.
  if (std::max({out.w, out.h, out.c}) > kMaxSide || out.w * out.h > kMaxElements / out.c) {
    context.error(layer, "", "its output {} is larger than any machine holds", to_string(out));
    layer.out = {};
    return;
  }
  for (const ParameterArray& array : parameter_arrays(layer)) {
    if (array.count > kMaxElements) {
      context.error(layer, "", "needs {} values in its array {}, more than any machine holds",
                    array.count, array.name);
      layer.out = {};
      layer.parameters = 0;
      return;
    }
    layer.parameters += array.count;
  }
}

void shape_all(Network& network, ShapeContext& context) {
  Dims previous = network.input();
  for (Layer& layer : network.layers) {
    shape_layer(context, layer, previous);
    previous = layer.out;
  }
}

enum class Axis { kWidth, kHeight };

using Broken = const std::vector<bool>*;

std::ptrdiff_t known_layers(const Network& network) {
  return std::ranges::count_if(network.layers,
                               [](const Layer& layer) { return is_known(layer.out); });
}

// True when every join of the axis fits at that size and no layer loses its shape.
bool fits(Network& trial, Axis axis, int size, std::ptrdiff_t known, Broken broken) {
  (axis == Axis::kWidth ? trial.net.width : trial.net.height) = size;
  Diagnostics ignored;
  ShapeContext context(trial, ignored, nullptr);
  context.set_broken(broken);
  context.set_trial();
  shape_all(trial, context);
  return known_layers(trial) >= known &&
         !(axis == Axis::kWidth ? context.misfits_w() : context.misfits_h());
}

// Input pixels per cell of the coarsest map, as a power of two: nearly every network halves.
int total_stride(const Network& network, Axis axis) {
  const bool width = axis == Axis::kWidth;
  const std::int64_t input = width ? network.net.width : network.net.height;
  std::int64_t stride = 1;
  for (const Layer& layer : network.layers) {
    const std::int64_t side = width ? layer.out.w : layer.out.h;
    while (side > 1 && 4 * input > 6 * stride * side) stride *= 2;
  }
  return static_cast<int>(stride);
}

// "96 or 104": the nearest multiples of the stride on both sides at which every join fits; empty
// when none is near.
std::string nearest_sizes(const Network& shaped, Axis axis, Broken broken) {
  constexpr int kTries = 16;
  const int size = axis == Axis::kWidth ? shaped.net.width : shaped.net.height;
  const int stride = total_stride(shaped, axis);
  const std::ptrdiff_t known = known_layers(shaped);
  std::string out;
  for (const int direction : {-1, 1}) {
    Network trial = shaped;
    const int start = direction < 0 ? (size - 1) / stride * stride : (size / stride + 1) * stride;
    for (int i = 0, candidate = start; i < kTries && candidate > 0;
         ++i, candidate += direction * stride) {
      if (!fits(trial, axis, candidate, known, broken)) continue;
      out += fmt::format("{}{}", out.empty() ? "" : " or ", candidate);
      break;
    }
  }
  return out;
}

// What to add to the message about maps that do not fit; empty when all do.
std::string size_hint(const Network& network, Broken broken) {
  if (network.net.width == 0) return {};
  Network trial = network;
  Diagnostics ignored;
  ShapeContext context(trial, ignored, nullptr);
  context.set_broken(broken);
  context.set_trial();
  shape_all(trial, context);
  std::string hint;
  std::string width, height;
  if (context.misfits_w()) width = nearest_sizes(trial, Axis::kWidth, broken);
  if (context.misfits_h()) height = nearest_sizes(trial, Axis::kHeight, broken);
  if (!width.empty())
    hint += fmt::format("; width={} in [net] does not suit, nearest that do: {}", network.net.width,
                        width);
  if (!height.empty()) {
    hint += fmt::format("; height={} in [net] does not suit, nearest that do: {}",
                        network.net.height, height);
  }
  return hint;
}

std::vector<std::string_view> section_names() {
  std::vector<std::string_view> names;
  for (const LayerDef* def : layer_defs()) {
    names.push_back(def->name);
    names.insert(names.end(), def->aliases.begin(), def->aliases.end());
  }
  return names;
}

Layer read_layer(const std::string& path, const cfg::Section& section, int index,
                 Diagnostics& diagnostics) {
  Layer layer;
  layer.index = index;
  layer.where = cfg::where(path, section.line);
  const LayerDef* def = find_layer_def(section.name);
  if (def == nullptr) {
    const bool is_net = section.name == "net" || section.name == "network";
    const auto hint = nearest(section.name, section_names());
    diagnostics.error(layer.where, "unknown section [{}]{}", section.name.substr(0, 60),
                      is_net ? "; only the first section may be [net]"
                      : hint ? fmt::format("; did you mean [{}]?", *hint)
                             : std::string("; `help` lists the sections"));
    layer.spec = EmptySpec{};
    return layer;
  }
  layer.section = def->name;
  cfg::SectionReader reader(path, section, diagnostics);
  layer.spec = def->read(reader);
  reader.read<CommonSpec>(layer.common, kCommonKeys);
  reader.report_unknown_keys();
  return layer;
}

void mark_frozen(Network& network) {
  bool frozen = false;
  for (auto layer = network.layers.rbegin(); layer != network.layers.rend(); ++layer) {
    frozen = frozen || layer->common.stopbackward == 1;
    layer->frozen = frozen;
  }
}

}  // namespace

Dims Network::input() const {
  if (net.width > 0 && net.height > 0 && net.channels > 0)
    return {net.width, net.height, net.channels};
  return net.inputs > 0 ? Dims{1, 1, net.inputs} : Dims{};
}

std::int64_t Network::parameters() const {
  std::int64_t sum = 0;
  for (const Layer& layer : layers) sum += layer.parameters;
  return sum;
}

double Network::bflops() const {
  double sum = 0;
  for (const Layer& layer : layers) sum += layer.bflops;
  return sum;
}

std::int64_t Network::average_outputs() const {
  std::int64_t sum = 0, count = 0;
  for (const Layer& layer : layers) {
    // Darknet: these have no input size there, so they do not count.
    const bool sizeless = std::holds_alternative<DropoutSpec>(layer.spec) ||
                          std::holds_alternative<SoftmaxSpec>(layer.spec) ||
                          std::holds_alternative<CostSpec>(layer.spec);
    if (sizeless || layer.in.w <= 1 || layer.in.h <= 1) continue;
    sum += layer.out.elements();
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

Network load_network(const std::string& path, std::string_view text, Diagnostics& diagnostics,
                     const Overrides& overrides) {
  Network network;
  network.path = path;
  cfg::Document document = cfg::parse(path, text, diagnostics);
  if (document.sections.empty()) return network;
  const cfg::Section& first = document.sections.front();
  if (first.name != "net" && first.name != "network") {
    diagnostics.error(cfg::where(path, first.line),
                      "the first section is [{}], it must be [net] or [network]",
                      first.name.substr(0, 60));
    return network;
  }
  {
    cfg::SectionReader reader(path, first, diagnostics);
    network.net = read_net(reader, overrides);
    reader.report_unknown_keys();
  }
  const std::vector<cfg::Section> sections(document.sections.begin() + 1, document.sections.end());
  if (sections.empty())
    diagnostics.error(cfg::where(path, first.line), "the network has no layers after [net]");
  if (network.input().elements() > kMaxElements) {
    diagnostics.error(cfg::where(path, first.line),
                      "[net] an input of {} is larger than any machine holds",
                      to_string(network.input()));
    return network;
  }
  std::vector<bool> broken;
  for (const cfg::Section& section : sections) {
    Diagnostics own;
    network.layers.push_back(
        read_layer(path, section, static_cast<int>(network.layers.size()), own));
    broken.push_back(own.has_errors());
    for (const Diagnostics::Entry& entry : own.entries()) {
      const bool error = entry.severity == Diagnostics::Severity::kError;
      error ? diagnostics.error(entry.where, "{}", entry.message)
            : diagnostics.warning(entry.where, "{}", entry.message);
    }
  }
  mark_frozen(network);
  ShapeContext context(network, diagnostics, &sections);
  context.set_broken(&broken);
  context.set_size_hint(size_hint(network, &broken));
  shape_all(network, context);
  return network;
}

Network load_network_file(const std::string& path, const Overrides& overrides) {
  Diagnostics diagnostics;
  constexpr Bytes kLargest = 64_MiB;
  Network network = load_network(path, read_file(path, kLargest), diagnostics, overrides);
  diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  for (const Diagnostics::Entry& entry : diagnostics.entries())
    log::warning("{}: {}", entry.where, entry.message);
  return network;
}

Network resized(const Network& network, int width, int height) {
  Network out = network;
  out.net.width = width;
  out.net.height = height;
  Diagnostics diagnostics;
  ShapeContext context(out, diagnostics, nullptr);
  context.set_size_hint(size_hint(out, nullptr));
  shape_all(out, context);
  diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  return out;
}

}  // namespace lantern::layers
