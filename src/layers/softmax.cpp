#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = SoftmaxSpec;
using K = cfg::Key<S>;

constexpr std::array kKeys{
    K{.name = "groups",
      .field = &S::groups,
      .otherwise = 1,
      .min = 1,
      .max = kMaxFilters,
      .doc = "Independent softmax groups; must divide the inputs."},
    K{.name = "temperature",
      .field = &S::temperature,
      .otherwise = 1,
      .doc = "Divides the inputs; not 0."},
    K{.name = "tree",
      .field = &S::tree,
      .otherwise = "",
      .doc = "Hierarchy file; one softmax per group of siblings.",
      .is_path = true},
    K{.name = "spatial",
      .field = &S::spatial,
      .doc = "1: softmax over the channels of each pixel.",
      .truncates = true},
    K{.name = "noloss", .field = &S::noloss, .doc = "1: no cross-entropy here, a [cost] follows."},
};

void finish(S& s, cfg::SectionReader& reader) {
  if (s.temperature == 0) {
    reader.diagnostics().error(reader.where("temperature"),
                               "[softmax] temperature is 0, want another number");
  }
}

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  const std::int64_t inputs = layer.in.elements();
  if (inputs % s.groups != 0) {
    context.error(layer, "groups", "groups={} does not divide the {} inputs", s.groups, inputs);
    return;
  }
  layer.out = layer.in;
}

constexpr std::string_view kAliases[] = {"soft"};

}  // namespace

extern const LayerDef kSoftmax;
const LayerDef kSoftmax{.name = "softmax",
                        .aliases = kAliases,
                        .doc = "Class probabilities and their cross-entropy.",
                        .keys = keys_of<S, kKeys>,
                        .read = read_as<S, kKeys, finish>,
                        .references = nullptr,
                        .shape = shape,
                        .parameters = nullptr};

}  // namespace lantern::layers
