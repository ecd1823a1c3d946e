#pragma once

#include <filesystem>
#include <span>

#include "io/weights.hpp"

namespace lantern::io {

/// The mean of every array over complete weights files of one network: weights, biases, scales and
/// rolling statistics of every kind of layer, summed in double in the order of the files. Header of
/// the first. Throws kInvalidData for a file that does not fit the layout.
Weights average_weights(std::span<const std::filesystem::path> files, const WeightsLayout& layout,
                        Diagnostics& warnings);

}  // namespace lantern::io
