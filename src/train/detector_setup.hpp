#pragma once

#include "train/run_setup.hpp"

namespace lantern::train {

/// Everything `detector train` reads before its first iteration, checked, before anything is
/// measured or planned.
RunSetup set_up_detector(const TrainSettings& settings, Console& console);

}  // namespace lantern::train
