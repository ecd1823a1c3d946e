#include "cli/detector.hpp"
#include "cli/training.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "train/trainer.hpp"

namespace lantern::cli {

namespace {

float iou_thresh(const Arguments& arguments) {
  const auto value = parse_float(arguments.text("iou_thresh"));
  if (!value || !(*value >= 0 && *value < 1)) {
    throw Error(ErrorCode::kUsage, "", "-iou_thresh is '{}', want 0 to 1",
                arguments.text("iou_thresh"));
  }
  return static_cast<float>(*value);
}

}  // namespace

int run_detector_train(const Arguments& arguments, Terminal& terminal) {
  train::TrainSettings settings = read_train_settings(arguments);
  settings.map = arguments.has("map");
  settings.map_epochs = arguments.number("mAP_epochs");
  settings.thresh = static_cast<float>(arguments.number("thresh"));
  settings.iou_thresh = iou_thresh(arguments);
  return run_training(train::train_detector, settings, arguments, terminal);
}

}  // namespace lantern::cli
