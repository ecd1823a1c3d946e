#include "train/run_checks.hpp"

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "data/loader.hpp"
#include "train/schedule.hpp"

namespace lantern::train {

namespace {

// Known now and not after hours: that mAP will have images.
void check_validation_images(const RunSetup& setup) {
  const data::ImageList list = data::read_image_list(setup.valid_list);
  std::error_code code;
  const auto there = [&](const std::string& image) { return std::filesystem::exists(image, code); };
  if (std::ranges::none_of(list.images, there)) {
    throw Error(ErrorCode::kInvalidData, setup.valid_list.string(),
                "none of its {} images is there, the first is {}; -map needs them",
                list.images.size(), list.images.front());
  }
}

}  // namespace

RunSetup set_up_checked_run(const TrainSettings& settings, Console& console) {
  RunSetup setup = set_up_run(settings, console);
  const layers::NetSpec& net = setup.network.net;
  check(schedule_of(net), setup.network.path);
  if (settings.map) check_validation_images(setup);
  if (net.max_batches <= 0) {
    throw Error(
        ErrorCode::kInvalidConfig, setup.network.path,
        "error: [net] max_batches is {}, want the number of iterations to train (for example {})",
        net.max_batches, std::max(6000, 2000 * setup.classes));
  }
  const auto sequences = [&](bool asked, const char* key) {
    if (!asked) return;
    throw Error(ErrorCode::kInvalidConfig, setup.network.path,
                "error: [net] {} is not supported by this verb: it loads single pictures, no "
                "sequences of frames; remove the key",
                key);
  };
  sequences(net.time_steps > 1, "time_steps");
  sequences(net.track != 0, "track");
  const bool rollback = settings.on_nan.empty() ? net.on_nan == layers::OnNan::kRollback
                                                : settings.on_nan == "rollback";
  if (rollback) {
    throw Error(ErrorCode::kUsage, "",
                "on_nan=rollback is not supported by this version: use stop or skip");
  }
  if (net.ema_alpha > 0) {
    throw Error(ErrorCode::kInvalidConfig, setup.network.path,
                "error: [net] ema_alpha is not supported: this version keeps no averaged "
                "weights; remove the key");
  }
  if (net.loss_scale != 1) {
    throw Error(ErrorCode::kInvalidConfig, setup.network.path,
                "error: [net] loss_scale is for mixed precision; this version trains in fp32, "
                "remove the key");
  }
  return setup;
}

bool skips_non_finite(const layers::NetSpec& net, const TrainSettings& settings) {
  return settings.on_nan.empty() ? net.on_nan == layers::OnNan::kSkip : settings.on_nan == "skip";
}

}  // namespace lantern::train
