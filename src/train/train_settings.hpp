#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "device/tier.hpp"

namespace lantern::train {

/// What a user asks of one training run; unset values come from the cfg.
struct TrainSettings {
  std::string data_file;
  std::string cfg_file;
  std::string weights_file;  ///< empty: random weights
  bool clear = false;        ///< iteration and `seen` start at 0 whatever the weights file says
  /// Detectors: evaluate while training, keep _best; `map_epochs` between evaluations.
  bool map = false;
  double map_epochs = 4;
  bool topk = false;  ///< classifiers: the same with the share of right answers
  float thresh = 0.25F;
  float iou_thresh = 0.5F;
  std::optional<bool> letter_box;
  bool strict = false;  ///< the first bad label or image is fatal
  int threads = 1;      ///< compute team
  int loader_threads = 1;
  std::optional<std::uint64_t> seed;
  std::string on_nan;  ///< empty: the cfg's; "stop", "skip" or "rollback"
  /// Go on from the complete state of an earlier run: this file, or, empty, that of `weights_file`,
  /// or the newest in the backup folder.
  std::optional<std::string> resume;
  std::string log_file;    ///< metrics as JSON lines; empty: <backup>/<base>_metrics.jsonl
  std::string chart_file;  ///< empty: <backup>/chart_<base>.png
  /// Of the flags of the same name; empty: the cfg's.
  std::string memory, host_memory, disk_memory, max_slowdown, mini_batch;
  std::string trace_file;  ///< Chrome trace of the first iterations; empty: none
  /// Makes the file tier, for tests that let it fail; empty: a file in the folder of disk_memory.
  std::function<std::shared_ptr<device::Tier>(Bytes bytes)> make_file;
  int show_images = 0;  ///< save that many augmented pictures as one contact sheet before training
};

/// Where a training run speaks. Lines of the console contract go to `line`; the rest is for people.
class Console {
 public:
  virtual ~Console() = default;
  /// One line (or several) of standard output, without the final newline.
  virtual void line(std::string_view text) = 0;
  /// A notice for people on standard error.
  virtual void notice(std::string_view text) = 0;
  /// State of a long task; drawn on a terminal only.
  virtual void progress(std::string_view task, std::int64_t done, std::int64_t total,
                        double per_second, std::string_view unit) = 0;
  /// True after Ctrl-C.
  virtual bool interrupted() const = 0;
};

struct TrainResult {
  std::int64_t iterations = 0;
  double average_loss = 0;
  std::optional<double> best;  ///< of what was measured while training, 0 to 1
  std::string final_weights;
  std::string chart;
  double seconds_computing = 0;
  double seconds_waiting = 0;  ///< for the loader
  std::int64_t images = 0;
};

}  // namespace lantern::train
