#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cfg/key.hpp"
#include "core/diagnostics.hpp"
#include "layers/network.hpp"

// How a section is declared; used inside layers/ only.
namespace lantern::layers {

/// A layer number as written under `key`.
struct Reference {
  std::string_view key;
  int value;
};

/// What a shape rule sees: the layers above are shaped, layer.in and layer.sources are set.
class ShapeContext {
 public:
  ShapeContext(const Network& network, Diagnostics& diagnostics,
               const std::vector<cfg::Section>* sections)
      : network_(network), diagnostics_(diagnostics), sections_(sections) {}

  const Network& network() const { return network_; }
  const Layer& layer(int index) const { return network_.layers[static_cast<std::size_t>(index)]; }

  /// Position of the key in the layer's section, or of the section.
  std::string where(const Layer& layer, std::string_view key = {}) const;

  template <typename... Args>
  void error(const Layer& layer, std::string_view key, fmt::format_string<Args...> format,
             Args&&... args) {
    diagnostics_.error(where(layer, key), "[{}] {}", layer.section,
                       fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void warning(const Layer& layer, std::string_view key, fmt::format_string<Args...> format,
               Args&&... args) {
    diagnostics_.warning(where(layer, key), "[{}] {}", layer.section,
                         fmt::format(format, std::forward<Args>(args)...));
  }

  /// Checks that two maps that meet in `layer` have equal width and height; says which input sizes
  /// would do. False: leave the layer without a shape.
  bool joins(const Layer& layer, std::string_view key, const Layer& first, const Layer& second);
  bool joins(const Layer& layer, std::string_view key, std::string_view first_name,
             const Dims& first, std::string_view second_name, const Dims& second);

  /// Layers whose keys had errors: their spec has defaults in place of what was meant, so they get
  /// no shape.
  void set_broken(const std::vector<bool>* broken) { broken_ = broken; }
  bool is_broken(const Layer& layer) const {
    return broken_ != nullptr && (*broken_)[static_cast<std::size_t>(layer.index)];
  }

  // Trial runs at other sizes: joins() takes note and goes on, so that both axes are judged in one
  // run.
  void set_trial() { trial_ = true; }
  bool misfits_w() const { return misfits_w_; }
  bool misfits_h() const { return misfits_h_; }
  void set_size_hint(std::string hint) { size_hint_ = std::move(hint); }

 private:
  const Network& network_;
  Diagnostics& diagnostics_;
  const std::vector<cfg::Section>* sections_;  // of the layers, in order; null after loading
  const std::vector<bool>* broken_ = nullptr;
  std::string size_hint_;
  bool trial_ = false, misfits_w_ = false, misfits_h_ = false;
};

/// One section kind.
struct LayerDef {
  std::string_view name;
  std::span<const std::string_view> aliases;
  std::string_view doc;
  std::vector<cfg::KeyInfo> (*keys)();
  Spec (*read)(cfg::SectionReader&);
  /// Layer numbers the spec names; null: none.
  void (*references)(const Spec&, std::vector<Reference>&);
  /// Sets out and bflops, or reports and leaves out as it is (unknown).
  void (*shape)(ShapeContext&, Layer&);
  /// Arrays of the weights file; null: none.
  std::vector<ParameterArray> (*parameters)(const Layer&);
  bool ignores_input = false;  ///< can be shaped although the previous layer is unknown
};

/// All section kinds; entry i describes alternative i of Spec.
std::span<const LayerDef* const> layer_defs();
const LayerDef* find_layer_def(std::string_view name_or_alias);
extern const std::span<const cfg::Key<CommonSpec>> kCommonKeys;

template <typename S, const auto& kKeys>
std::vector<cfg::KeyInfo> keys_of() {
  return cfg::describe_all<S>(kKeys);
}
/// Reads the table, then `kFinish(spec, reader)` folds keys into each other and checks them.
template <typename S, const auto& kKeys, auto kFinish = nullptr>
Spec read_as(cfg::SectionReader& reader) {
  S spec;
  reader.read<S>(spec, kKeys);
  if constexpr (!std::is_null_pointer_v<decltype(kFinish)>) kFinish(spec, reader);
  return spec;
}

inline constexpr auto kActivationWords = [] {
  std::array<cfg::Word, ops::kActivationNames.size()> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = {ops::kActivationNames[i].name, static_cast<int>(ops::kActivationNames[i].value)};
  }
  return words;
}();

template <typename S>
constexpr cfg::Key<S> activation_key(const char* otherwise) {
  return {.name = "activation",
          .field = cfg::word_field<S, &S::activation>(),
          .otherwise = otherwise,
          .doc = "Applied to every output value.",
          .words = kActivationWords};
}
template <typename S>
constexpr cfg::Key<S> batch_normalize_key() {
  return {.name = "batch_normalize",
          .field = &S::batch_normalize,
          .min = 0,
          .max = 1,
          .doc = "1: batch normalisation in every sub-layer."};
}

// Limits that keep every size and count far inside 64 bits.
inline constexpr double kMaxFilters = 1 << 20, kMaxKernel = 1 << 10, kMaxStride = 1 << 10,
                        kMaxClasses = 1 << 20;
inline constexpr std::int64_t kMaxSide = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 36;

/// A convolution as the shape rules and the parameter lists see it; also the sub-convolutions of
/// [crnn].
struct ConvShape {
  std::int64_t filters, channels, groups, size, stride_x, stride_y, padding, dilation;
  std::int64_t out_w(std::int64_t w) const { return (w + 2 * padding - size) / stride_x + 1; }
  std::int64_t out_h(std::int64_t h) const { return (h + 2 * padding - size) / stride_y + 1; }
  std::int64_t weights() const { return filters * (channels / groups) * size * size; }
  /// 2 * weights * W * H / 1e9, one 32nd of it with binarised arithmetic.
  double bflops(const Dims& out, bool xnor) const;
  /// False, with a message, when the input cannot be convolved so.
  bool check(ShapeContext& context, const Layer& layer, const Dims& in) const;
};

/// biases; scales, rolling mean and variance; weights. Names get `prefix` in front.
void append_conv_arrays(std::vector<ParameterArray>& arrays, std::string_view prefix,
                        std::int64_t filters, std::int64_t weights, bool batch_normalize);
/// biases; weights; scales, rolling mean and variance: not the order of a convolution.
void append_connected_arrays(std::vector<ParameterArray>& arrays, std::string_view prefix,
                             std::int64_t inputs, std::int64_t outputs, bool batch_normalize);

/// Depthwise blur of `antialiasing`: 1 = 3x3 with padding 1, 2 = 2x2 without; carries the layer's
/// stride.
Dims blurred(const Dims& map, int antialiasing, int stride_x, int stride_y);

/// Output of a pooling with `padding` cells on both sides together.
Dims pooled(const Dims& in, int size, int padding, int stride_x, int stride_y);
/// False, with a message, when a window does not fit the padded input or could lie in the padding
/// alone.
bool check_pool_window(ShapeContext& context, const Layer& layer, int size, int padding);
/// Shape rule of [reorg] and [reorg3d].
void reorganise(ShapeContext& context, Layer& layer, int stride, bool reverse, bool historic);

/// The layer whose filters a head behind `index` sees: the nearest [convolutional] through layers
/// that keep the channels; null when a [route] of several, or another kind, stands between.
const Layer* feeding_convolution(const ShapeContext& context, int index);
/// Reports a head whose input has not `needed` channels; `formula` such as "(2+4+1)*3".
bool check_head_channels(ShapeContext& context, const Layer& layer, std::int64_t needed,
                         const std::string& formula);

std::string to_string(const Dims& dims);

}  // namespace lantern::layers
