#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lantern/error.hpp"

namespace lantern {

/// A picture in the caller's memory, of any size. Nothing is kept after the call that takes it.
struct ImageView {
  enum class Format {
    kU8Hwc,   ///< bytes, interleaved [height][width][channels]
    kF32Chw,  ///< floats 0..1, planes [channels][height][width]
  };
  enum class Order { kRgb, kBgr };

  const void* data = nullptr;
  int width = 0, height = 0;
  int channels = 3;  ///< 3 or 1; a grey picture feeds a network of 3 channels and the other way
  Format format = Format::kU8Hwc;
  Order order = Order::kRgb;
  /// kU8Hwc: from one row to the next; 0: width * channels.
  std::ptrdiff_t row_bytes = 0;
};

/// Centre and size.
struct Box {
  float x = 0, y = 0, width = 0, height = 0;
};

struct Detection {
  Box box;
  int class_id = 0;      ///< most probable class
  float confidence = 0;  ///< of that class
  float objectness = 0;
  /// Of every class, 0 below the threshold; empty unless DetectOptions asks for them.
  std::vector<float> probabilities;
};

struct ClassScore {
  int class_id = 0;
  float score = 0;
};

/// How boxes that overlap are thinned out, class by class.
enum class Nms { kCfg, kNone, kDefault, kGreedy, kDiou, kCorners };

struct DetectOptions {
  float threshold = 0.25F;      ///< a class counts above it
  float nms_threshold = 0.45F;  ///< overlap above which the less probable of two boxes goes
  Nms nms = Nms::kCfg;          ///< kCfg: by nms_kind= of the last detection layer
  bool pixels = false;          ///< boxes in pixels of the picture; else relative to it, 0..1
  bool all_probabilities = false;
  /// Keeps the picture's shape, on grey; empty: by letter_box= of [net].
  std::optional<bool> letterbox;
};

struct LoadOptions {
  /// Pictures that are computed together; memory grows with it. Of a recurrent network: sequences
  /// that run side by side.
  int batch = 1;
  int threads = 0;            ///< that compute; 0: the cores of this process
  int width = 0, height = 0;  ///< of the network's input; 0: as in the cfg
  std::string names;          ///< file with a class name a line; empty: classes have no names
};

enum class NetKind {
  kDetector,    ///< has [yolo], [Gaussian_yolo] or [region] layers
  kClassifier,  ///< its last layer gives one value a class
};

/// A network with its weights, ready to run. Everything it computes with lies in one block of
/// memory that load() takes; calls take only what their results and the scaled pictures need.
///
/// Threads: nets share nothing, so each may be used from a thread of its own. One net may be used
/// by several threads at once: pictures are scaled and results decoded in the callers' threads,
/// side by side, and the passes through the network take turns, each with all of the net's
/// threads. Results depend on neither. Moving and destroying are for one thread alone.
///
/// Every function throws Exception.
class Net {
 public:
  /// Reads cfg and weights, plans and takes the memory.
  static Net load(const std::string& cfg, const std::string& weights,
                  const LoadOptions& options = {});
  Net(Net&&) noexcept;
  Net& operator=(Net&&) noexcept;
  ~Net();

  NetKind kind() const;
  int width() const;     ///< of the input, pixels
  int height() const;    ///< of the input, pixels
  int channels() const;  ///< of the input
  int batch() const;     ///< pictures of one pass
  /// Has layers that remember ([rnn], [gru], [lstm], [crnn], [conv_lstm], [history]). Then picture
  /// i of a call is the next one of sequence i % batch(), so that a call takes a multiple of
  /// batch() pictures (kUsage otherwise), and calls must come in order: from one thread.
  bool is_recurrent() const;
  /// All sequences start again: what comes next has nothing to do with what was. Nothing to do for
  /// a network that is not recurrent.
  void reset();
  int classes() const;
  /// One a class, or none.
  const std::vector<std::string>& names() const;
  /// What cfg and weights gave cause to; one line each.
  const std::vector<std::string>& warnings() const;
  /// Size of the block of memory.
  std::int64_t memory_bytes() const;

  /// Objects of a picture, the most probable first. kUsage for a net that is no detector.
  std::vector<Detection> detect(const ImageView& image, const DetectOptions& options = {}) const;
  /// Of any number of pictures, batch() at a time; element i belongs to images[i].
  std::vector<std::vector<Detection>> detect(std::span<const ImageView> images,
                                             const DetectOptions& options = {}) const;

  /// The `top` best classes of a picture, best first (0: all). The picture's shorter side is scaled
  /// to the network and the middle taken, as in training. kUsage for a net that is no classifier.
  std::vector<ClassScore> classify(const ImageView& image, int top = 5) const;
  std::vector<std::vector<ClassScore>> classify(std::span<const ImageView> images,
                                                int top = 5) const;

  /// The last layer's output for input that is ready: `count` pictures [channels][height][width] of
  /// the network's size; gives [count][output_size()].
  std::vector<float> predict(std::span<const float> input, int count = 1) const;
  std::int64_t output_size() const;

  struct Impl;

 private:
  explicit Net(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Version of the library: "0.1.0".
const char* version();

}  // namespace lantern
