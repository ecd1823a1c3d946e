#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/diagnostics.hpp"
#include "layers/network.hpp"

namespace lantern::io {

enum class OnnxHeads {
  kRaw,      ///< what feeds each detection layer, one output a layer: [N, A*(5+classes), H, W]
  kDecoded,  ///< boxes [N, B, 4] (centre and size, relative to the input), scores [N, B, classes]
};

struct OnnxOptions {
  OnnxHeads heads = OnnxHeads::kRaw;
  std::int64_t batch = 1;
  /// Batch normalisation goes into the weights of the convolution before it; else nodes of its own.
  bool fold_batch_norm = false;
  std::vector<std::string> names{};  ///< of the classes, for the metadata; may be empty
  std::string producer_version{};    ///< for the metadata
};

/// A network with the weights of a file as an ONNX model of opset 13: the bytes of the file. The
/// input is "images" [N, C, H, W], RGB, 0..1. A network without detection layers gives "output",
/// what its last layer gives. Throws kInvalidConfig, at the section's place, for a layer that
/// opset 13 has no form for.
std::string export_onnx(const layers::Network& network, const std::filesystem::path& weights,
                        const OnnxOptions& options, Diagnostics& warnings);

}  // namespace lantern::io
