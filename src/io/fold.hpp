#pragma once

#include <string_view>
#include <vector>

#include "io/weights.hpp"

namespace lantern::io {

/// Folds the batch normalisation of a layer into its weights and biases, for networks that
/// only infer: w <- w * scale / sqrt(variance + eps), bias <- bias - mean * scale / sqrt(variance +
/// eps), computed in double. `values` are parallel to layer.arrays, which has the five of a
/// normalised layer; scales, mean and variance are as if nothing was loaded (1, 0, 0) where empty.
/// `part`: what the names of a sub-layer's arrays begin with ("wf.").
void fold_batch_norm(const WeightsLayer& layer, std::vector<std::vector<float>>& values,
                     std::string_view part = {});

}  // namespace lantern::io
