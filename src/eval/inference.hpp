#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "eval/decode.hpp"
#include "eval/detection.hpp"
#include "eval/nms.hpp"
#include "exec/model.hpp"

namespace lantern::eval {

/// Turns pictures at network size into detections, any number up to the model's forward batch at a
/// time. The model must have a forward program and at least one detection head; it must outlive
/// this.
class Inference {
 public:
  /// Throws kInvalidConfig for a network without a detection head.
  explicit Inference(exec::Model& model);

  int classes() const { return classes_; }
  std::int64_t batch() const { return batch_; }
  /// Kind and beta are those of the last head's cfg section, as the reference takes them.
  const NmsOptions& nms() const { return nms_; }

  /// What the heads gave for the pictures of one run, one array [batch, C, H, W] a head.
  using Outputs = std::vector<std::vector<float>>;

  /// Runs images [count, C, H, W]; 1 <= count <= batch(). Places that are not used are fed zeros.
  void run(std::span<const float> images, std::int64_t count) { run(images, count, outputs_); }
  /// The same into memory of the caller.
  void run(std::span<const float> images, std::int64_t count, Outputs& outputs);

  struct Options {
    float threshold = 0.25F;
    float nms_threshold = 0.45F;
    bool suppress = true;
    std::optional<NmsKind> nms_kind{};  ///< empty: as nms() says
    /// Size of the picture in pixels when it was letterboxed into the network input.
    std::optional<std::pair<int, int>> letterboxed_image{};
  };
  /// Detections of picture `image` of the last run, suppressed and sorted by probability.
  DetectionList detections(std::int64_t image, const Options& options) const {
    return detections(outputs_, image, options);
  }
  /// The same of a run into memory of the caller; for several threads at once, also during a run.
  DetectionList detections(const Outputs& outputs, std::int64_t image,
                           const Options& options) const;

 private:
  struct Head {
    YoloHead head;
    graph::TensorId output{};
  };
  exec::Model& model_;
  std::int64_t batch_ = 1;
  int classes_ = 0;
  NmsOptions nms_;
  std::vector<Head> heads_;
  Outputs outputs_;
  std::vector<float> padded_;
};

}  // namespace lantern::eval
