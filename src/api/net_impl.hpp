#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/picture.hpp"
#include "eval/inference.hpp"
#include "exec/model.hpp"
#include "lantern/net.hpp"

namespace lantern {

/// What stands behind Net. Everything but the model is constant after loading; the model is used
/// under `turn` only.
struct Net::Impl {
  /// What one pass gives, in the caller's memory.
  struct Outputs {
    eval::Inference::Outputs heads;
    std::vector<float> last;  ///< of the last layer, [batch][output_size]
  };

  Impl(const std::string& cfg, const std::string& weights, const LoadOptions& options);

  api::InputSpec input() const;
  std::size_t input_floats() const;   ///< of one picture
  std::size_t output_floats() const;  ///< of one picture, last layer
  bool cfg_letterbox() const;
  void require(NetKind wanted, const char* function) const;
  bool is_recurrent() const { return !model->lowered().states.empty(); }
  /// Throws kUsage for pictures that are not a step of every sequence of a recurrent network.
  void require_steps(std::size_t pictures) const;
  void reset();

  /// Runs a full batch [batch][channels][height][width]; waits for its turn.
  void run(std::span<const float> batch_input, Outputs& outputs);
  /// Heads of picture `image`, before or after suppression. Needs no turn.
  eval::DetectionList list(const Outputs& outputs, std::int64_t image,
                           const eval::Inference::Options& options) const {
    return inference->detections(outputs.heads, image, options);
  }

  std::unique_ptr<exec::Model> model;
  std::optional<eval::Inference> inference;  ///< of a detector
  graph::TensorId last_output{};
  int classes = 0;
  std::vector<std::string> names, warnings;
  std::mutex turn;
};

}  // namespace lantern
