#include "layers/layer_def.hpp"

namespace lantern::layers {
namespace {

using S = ShortcutSpec;
using K = cfg::Key<S>;

constexpr std::array<cfg::Word, 4> kWeightsTypes{
    {{"none", 0}, {"per_feature", 1}, {"per_layer", 1}, {"per_channel", 2}}};
constexpr std::array<cfg::Word, 4> kNormalizations{
    {{"none", 0}, {"relu", 1}, {"avg_relu", 1}, {"softmax", 2}}};

constexpr std::array kKeys{
    K{.name = "from",
      .field = &S::from,
      .otherwise = cfg::Required{},
      .doc = "Layers added to the previous one; negative: relative to this layer."},
    activation_key<S>("linear"),
    K{.name = "weights_type",
      .field = cfg::word_field<S, &S::weights_type>(),
      .otherwise = "none",
      .doc = "Learned factor of each input: one number, or one per channel.",
      .words = kWeightsTypes},
    K{.name = "weights_normalization",
      .field = cfg::word_field<S, &S::weights_normalization>(),
      .otherwise = "none",
      .doc = "How the factors are made to sum to 1; must be given with weights_type.",
      .words = kNormalizations},
};

void finish(S& s, cfg::SectionReader& reader) {
  if (s.weights_type != WeightsType::kNone &&
      s.weights_normalization == WeightsNormalization::kNone) {
    reader.diagnostics().error(
        reader.where("weights_type"),
        "[shortcut] weights_type needs weights_normalization=relu or softmax");
  }
}

void references(const Spec& spec, std::vector<Reference>& out) {
  for (const int layer : std::get<S>(spec).from) out.push_back({"from", layer});
}

void shape(ShapeContext& context, Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  const Dims& in = layer.in;
  bool fits = !layer.sources.empty();
  for (const int index : layer.sources) {
    const Layer& source = context.layer(index);
    const Dims& from = source.out;
    // Classic Darknet rule for maps of two sizes: one is a whole multiple of the other, the same on
    // both axes.
    if (from.w == in.w && from.h == in.h) continue;
    const bool multiple = from.w / in.w == from.h / in.h && in.w / from.w == in.h / from.h;
    const bool exact = multiple && (from.w % in.w == 0 || in.w % from.w == 0) &&
                       (from.h % in.h == 0 || in.h % from.h == 0);
    if (exact) continue;
    fits = context.joins(layer, "from", "the previous layer", in,
                         fmt::format("layer {} ({})", index, source.where), from) &&
           fits;
  }
  if (!fits) return;
  layer.out = in;
  layer.bflops = static_cast<double>(in.elements()) * static_cast<double>(layer.sources.size()) *
                 (s.weights_type == WeightsType::kNone ? 1.0 : 2.0) / 1e9;
}

std::vector<ParameterArray> parameters(const Layer& layer) {
  const auto& s = std::get<S>(layer.spec);
  const auto inputs =
      static_cast<std::int64_t>(s.from.size()) + 1;  // index 0 is the previous layer
  if (s.weights_type == WeightsType::kNone) return {};
  return {{"weights", s.weights_type == WeightsType::kPerFeature ? inputs : inputs * layer.in.c}};
}

}  // namespace

extern const LayerDef kShortcut;
const LayerDef kShortcut{.name = "shortcut",
                         .aliases = {},
                         .doc = "Adds earlier layers to the previous one.",
                         .keys = keys_of<S, kKeys>,
                         .read = read_as<S, kKeys, finish>,
                         .references = references,
                         .shape = shape,
                         .parameters = parameters};

}  // namespace lantern::layers
