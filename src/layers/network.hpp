#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cfg/key.hpp"
#include "core/diagnostics.hpp"
#include "layers/specs.hpp"

namespace lantern::layers {

/// Extents of one image or feature map; a vector of n numbers is {1, 1, n}.
struct Dims {
  std::int64_t w = 0, h = 0, c = 0;
  std::int64_t elements() const { return w * h * c; }
  bool operator==(const Dims&) const = default;
};

struct Layer {
  int index = 0;  ///< 0 is the first section after [net]
  std::string
      section;        ///< the section's own name, aliases resolved: "convolutional", "maxpool", ...
  std::string where;  ///< "net.cfg:112:1", of the section header
  CommonSpec common;
  Spec spec;
  /// Absolute indices of the layers the section names, in its order: route `layers`, `from` of
  /// shortcut, sam and scale_channels, share_index, embedding_layer, yolo_layer. All are smaller
  /// than `index`.
  std::vector<int> sources;
  bool frozen = false;  ///< at or before the last layer with stopbackward=1
  Dims in;  ///< of the previous layer (the image for layer 0); of the first source for route
  Dims out;
  double bflops = 0;            ///< per image, as Darknet counts them (layers.md 9)
  std::int64_t parameters = 0;  ///< floats in a .weights file
};

struct Network {
  std::string path;
  NetSpec net;
  std::vector<Layer> layers;

  /// The network input: width x height x channels, or 1 x 1 x inputs.
  Dims input() const;
  /// Images of one forward pass: batch / subdivisions, times time_steps.
  int minibatch() const { return net.batch / net.subdivisions * net.time_steps; }
  std::int64_t parameters() const;
  double bflops() const;
  /// Darknet's `avg_outputs`: mean of the outputs over the layers with an input larger than 1 x 1.
  std::int64_t average_outputs() const;
};

/// What a detection layer tells loaders and decoders.
struct DetectionKeys {
  int classes = 0;
  int max = 0;  ///< true boxes kept per image
  float jitter = 0, resize = 1, random = 0;
  std::string where;  ///< of the section
};
/// Nothing for layers of another kind. The key `random` of [detection] does not change the size of
/// the network and is not given.
std::optional<DetectionKeys> detection_keys(const Layer& layer);

/// Values of the caller that replace those of [net] before anything is checked or shaped. Inference
/// passes batch = subdivisions = time_steps = 1.
struct Overrides {
  std::optional<int> width, height, batch, subdivisions, time_steps;
};

/// Parses, checks and shapes a cfg. Everything wrong goes to `diagnostics`; when that has errors,
/// the network is incomplete and must not be used.
Network load_network(const std::string& path, std::string_view text, Diagnostics& diagnostics,
                     const Overrides& overrides = {});

/// Reads the file, logs warnings and throws one Error (kInvalidConfig) that holds every error line.
Network load_network_file(const std::string& path, const Overrides& overrides = {});

/// The same network at another input size, as random multi-scale training uses it. Throws
/// kInvalidConfig when a layer does not fit that size.
Network resized(const Network& network, int width, int height);

/// Darknet's table of layers with `Total BFLOPS` and `avg_outputs` (layers.md 9).
std::string layer_table(const Network& network);

/// One array of a `.weights` file.
struct ParameterArray {
  std::string name;    ///< "biases", "weights", "scales", "rolling_mean", "rolling_variance";
                       ///< sub-layers of recurrent sections in front: "input.biases"
  std::int64_t count;  ///< floats
};
/// Whether an array is a matrix or the kernels of a layer or of a sub-layer ("weights",
/// "self.weights").
constexpr bool is_weights(std::string_view array) {
  return array == "weights" || array.ends_with(".weights");
}
/// The arrays the file stores for the layer, in file order (layers.md 8.2). Ignores dontload and
/// dontloadscales.
std::vector<ParameterArray> parameter_arrays(const Layer& layer);

/// Every section kind with its keys, [net] first; for help, docs and JSON.
std::vector<cfg::SectionInfo> section_reference();
/// The keys all layer sections share.
cfg::SectionInfo common_reference();
/// A section by name or alias, with the common keys of layer sections appended.
std::optional<cfg::SectionInfo> find_section(std::string_view name);

}  // namespace lantern::layers
