#pragma once

#include "train/run_setup.hpp"

namespace lantern::train {

/// set_up_run, and then refuses by name what this version does not train with, and a -map that has
/// no images: before anything is measured or planned.
RunSetup set_up_checked_run(const TrainSettings& settings, Console& console);

/// An iteration with a loss that is not finite is dropped, not the end; the flag decides before the
/// key.
bool skips_non_finite(const layers::NetSpec& net, const TrainSettings& settings);

}  // namespace lantern::train
