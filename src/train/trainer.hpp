#pragma once

#include "train/train_settings.hpp"

namespace lantern::train {

/// `detector train`: reads data and cfg, trains to max_batches, writes checkpoints, chart and
/// metrics beside them (reference/training.md 13). Everything that can be wrong with the input is
/// said before the first iteration.
TrainResult train_detector(const TrainSettings& settings, Console& console);
/// `classifier train`: the same with pictures that have classes.
TrainResult train_classifier(const TrainSettings& settings, Console& console);

}  // namespace lantern::train
