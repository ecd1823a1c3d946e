#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.hpp"
#include "core/types.hpp"

namespace lantern::io {

inline constexpr std::string_view kBiases = "biases";
inline constexpr std::string_view kScales = "scales";
inline constexpr std::string_view kRollingMean = "rolling_mean";
inline constexpr std::string_view kRollingVariance = "rolling_variance";
inline constexpr std::string_view kWeights = "weights";

/// One array of floats in file order. Sub-layers of recurrent sections prefix the name:
/// "wf.biases".
struct WeightsArray {
  std::string name;
  std::int64_t count = 0;
  /// First extent of a matrix [rows, count / rows] in memory (filters, outputs); needed only where
  /// it may be transposed.
  std::int64_t rows = 0;
  /// Matrix of a connected layer: files with the transposed flag store it inputs x outputs.
  bool connected = false;
};

struct WeightsLayer {
  int layer = 0;        ///< index in the network
  std::string section;  ///< "convolutional"
  std::vector<WeightsArray> arrays{};
  bool dontload = false;        ///< nothing of the layer is in the file
  bool dontloadscales = false;  ///< scales, rolling_mean, rolling_variance are not in the file
  bool flipped = false;         ///< "weights" is stored transposed
};

/// The layers that have weights, in file order; layers without are not listed.
using WeightsLayout = std::vector<WeightsLayer>;

/// Values per layer of the layout and array; empty where nothing was loaded.
using WeightsValues = std::vector<std::vector<std::vector<float>>>;
using WeightsViews = std::vector<std::vector<std::span<const float>>>;
WeightsViews views_of(const WeightsValues& values);

struct WeightsHeader {
  std::int32_t major = 0, minor = 2, revision = 5;
  std::uint64_t seen = 0;  ///< images

  /// 64-bit `seen` iff major*10 + minor >= 2 and both are below 1000 (the original Darknet's rule
  /// for the latter).
  bool has_wide_seen() const;
  bool is_transposed() const { return major > 1000 || minor > 1000; }
  Bytes size() const { return has_wide_seen() ? 20 : 16; }
  bool operator==(const WeightsHeader&) const = default;
};

struct Weights {
  WeightsHeader header;
  WeightsValues values;
  int layers_loaded = 0;    ///< layers of the layout whose data was read
  int layers_expected = 0;  ///< layers of the layout that have data in a complete file
  Bytes file_size = 0;
  bool is_complete() const { return layers_loaded == layers_expected; }
};

enum class Purpose {
  kTraining,    ///< start of a training: a file cut at a layer boundary and trailing bytes are
                ///< warnings
  kEvaluation,  ///< every byte must fit
};

inline constexpr int kAllLayers = std::numeric_limits<int>::max();

/// Bytes of a file for the layout: header and every array that is in the file, layers with index <
/// up_to_layer.
Bytes weights_file_size(const WeightsHeader& header, const WeightsLayout& layout,
                        int up_to_layer = kAllLayers);

/// Only the header. Throws kInvalidData for what is no weights file.
WeightsHeader read_weights_header(const std::filesystem::path& path);

/// Reads the layers with index < up_to_layer (`partial`; then bytes behind them are not looked at).
/// Throws kInvalidData, naming file size, size needed and the layer where data ends, for a file cut
/// inside a layer or header, and, for evaluation, for a file cut between layers, trailing bytes or
/// values that are not finite. A file without any layer is always refused.
Weights read_weights(const std::filesystem::path& path, const WeightsLayout& layout,
                     Purpose purpose, Diagnostics& warnings, int up_to_layer = kAllLayers);
/// The same, handing on one entry of the layout after the other as soon as it is read, so that no
/// more than one is held; Weights::values stays empty. The sink may take the arrays.
using WeightsSink = std::function<void(std::size_t, std::vector<std::vector<float>>&)>;
Weights read_weights(const std::filesystem::path& path, const WeightsLayout& layout,
                     Purpose purpose, Diagnostics& warnings, const WeightsSink& sink,
                     int up_to_layer = kAllLayers);

/// Writes header (its version decides the width of `seen` and the orientation of connected
/// matrices) and all arrays of the layers with index < up_to_layer; dontload, dontloadscales and
/// flipped are ignored as in Darknet. Atomic. Reading then writing with the same header gives the
/// same bytes (unless one of those three keys is set).
void write_weights(const std::filesystem::path& path, const WeightsHeader& header,
                   const WeightsLayout& layout, const WeightsViews& values,
                   int up_to_layer = kAllLayers);
/// The same, asking for one array after the other: entry of the layout, array of the entry. A view
/// is read before the next is asked for.
using WeightsSource = std::function<std::span<const float>(std::size_t, std::size_t)>;
void write_weights(const std::filesystem::path& path, const WeightsHeader& header,
                   const WeightsLayout& layout, const WeightsSource& source,
                   int up_to_layer = kAllLayers);

}  // namespace lantern::io
