#include <algorithm>

#include "layers/layer_def.hpp"
#include "layers/net.hpp"

namespace lantern::layers {

// clang-format breaks this list in another way every time it runs.
// clang-format off
#define LANTERN_LAYERS(X)                                                                          \
  X(kConvolutional)                                                                                \
  X(kMaxpool)                                                                                      \
  X(kLocalAvgpool) X(kAvgpool) X(kRoute) X(kShortcut) X(kScaleChannels) X(kSam) X(kUpsample)       \
      X(kReorg3d) X(kReorg) X(kDropout) X(kBatchnorm) X(kConnected) X(kActivation) X(kSoftmax)     \
          X(kCost) X(kCrop) X(kNormalization) X(kLocal) X(kRnn) X(kGru) X(kLstm) X(kCrnn)          \
              X(kConvLstm) X(kHistory) X(kImplicit) X(kEmpty) X(kYolo) X(kGaussianYolo) X(kRegion) \
                  X(kDetection) X(kContrastive)
// clang-format on

#define LANTERN_DECLARE(name) extern const LayerDef name;
LANTERN_LAYERS(LANTERN_DECLARE)
#undef LANTERN_DECLARE

namespace {

// Order of Spec's alternatives.
#define LANTERN_ADDRESS(name) &name,
constexpr const LayerDef* kDefs[] = {LANTERN_LAYERS(LANTERN_ADDRESS)};
#undef LANTERN_ADDRESS
static_assert(std::size(kDefs) == std::variant_size_v<Spec>);

using C = CommonSpec;
using K = cfg::Key<C>;
constexpr std::array kCommonKeyTable{
    K{.name = "clip",
      .field = &C::clip,
      .min = 0,
      .doc = "Clamp weights to -clip..clip after each update; 0: off."},
    K{.name = "onlyforward",
      .field = &C::onlyforward,
      .doc = "1: skip this layer in the backward pass."},
    K{.name = "dont_update",
      .field = &C::dont_update,
      .unit = "iterations",
      .doc = "No update of this layer up to this iteration."},
    K{.name = "burnin_update",
      .field = &C::burnin_update,
      .doc = "No update of this layer before iteration burnin_update * burn_in."},
    K{.name = "stopbackward",
      .field = &C::stopbackward,
      .min = 0,
      .doc = "1: this and all earlier layers are frozen; N > 1: back-propagation stops here up to "
             "iteration N."},
    K{.name = "train_only_bn",
      .field = &C::train_only_bn,
      .doc = "1: of this and all earlier layers only the running statistics move."},
    K{.name = "dontload",
      .field = &C::dontload,
      .doc = "1: the weights file has nothing for this layer."},
    K{.name = "dontloadscales",
      .field = &C::dontloadscales,
      .doc = "1: the weights file has no scales, mean and variance for this layer."},
    K{.name = "learning_rate",
      .field = &C::learning_rate,
      .otherwise = 1,
      .doc = "Factor on the learning rate for this layer."},
};

cfg::SectionInfo info_of(const LayerDef& def) {
  return {.name = def.name,
          .aliases = {def.aliases.begin(), def.aliases.end()},
          .doc = def.doc,
          .keys = def.keys()};
}

cfg::SectionInfo net_info() {
  return {.name = "net",
          .aliases = {"network"},
          .doc = "Input, training and options of the whole network.",
          .keys = cfg::describe_all<NetSpec>(kNetKeys)};
}

}  // namespace

const std::span<const K> kCommonKeys{kCommonKeyTable};

std::span<const LayerDef* const> layer_defs() { return kDefs; }

const LayerDef* find_layer_def(std::string_view name) {
  for (const LayerDef* def : kDefs) {
    if (def->name == name || std::ranges::find(def->aliases, name) != def->aliases.end())
      return def;
  }
  return nullptr;
}

std::vector<cfg::SectionInfo> section_reference() {
  std::vector<cfg::SectionInfo> sections{net_info()};
  for (const LayerDef* def : kDefs) sections.push_back(info_of(*def));
  return sections;
}

cfg::SectionInfo common_reference() {
  return {.name = "every layer",
          .aliases = {},
          .doc = "Keys of every layer section.",
          .keys = cfg::describe_all<CommonSpec>(kCommonKeys)};
}

std::optional<cfg::SectionInfo> find_section(std::string_view name) {
  if (name == "net" || name == "network") return net_info();
  const LayerDef* def = find_layer_def(name);
  if (def == nullptr) return std::nullopt;
  cfg::SectionInfo info = info_of(*def);
  for (cfg::KeyInfo& key : common_reference().keys) info.keys.push_back(std::move(key));
  return info;
}

std::vector<ParameterArray> parameter_arrays(const Layer& layer) {
  const LayerDef* def = kDefs[layer.spec.index()];
  return def->parameters == nullptr ? std::vector<ParameterArray>{} : def->parameters(layer);
}

}  // namespace lantern::layers
