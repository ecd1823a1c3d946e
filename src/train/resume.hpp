#pragma once

#include "train/run_setup.hpp"

namespace lantern::train {

/// The state file that -resume means, its bytes checked. Throws kInvalidData when there is none
/// that can be used.
SavedState find_state(const RunSetup& run, const TrainSettings& settings);

/// Refuses a state that cannot be continued with this cfg and these flags; says what makes the run
/// another than an unbroken one would have been.
void check_state(const RunSetup& run, const TrainSettings& settings, Console& console);

/// Beside `x.weights` lies `x.state`.
std::filesystem::path state_beside(std::filesystem::path weights);

}  // namespace lantern::train
