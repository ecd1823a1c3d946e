#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/diagnostics.hpp"

namespace lantern::io {

/// A network without batch norms that computes what another one infers.
struct Denormalized {
  std::string cfg;  ///< the text of the other, with batch_normalize=0; all other lines as they are
  int folded = 0;   ///< batch norms, sub-layers of recurrent sections by themselves
  int kept = 0;     ///< [batchnorm] sections: they stand alone and stay
};

/// Folds every batch norm of a cfg (its text, with its path for messages) and of its weights file
/// into weights and biases, sub-layers of recurrent sections too, and writes the weights to
/// `weights_out`. Throws kInvalidConfig or kInvalidData for what cannot be read, and for sections
/// with dontload, whose weights are in no file.
Denormalized denormalize(const std::string& cfg_path, std::string_view cfg_text,
                         const std::filesystem::path& weights,
                         const std::filesystem::path& weights_out, Diagnostics& warnings);

}  // namespace lantern::io
