#pragma once

#include <cstdint>
#include <filesystem>

#include "data/loader.hpp"
#include "train/run_setup.hpp"

namespace lantern::train {

/// Draws the first `count` pictures that a run with this loader trains on, as augmented and with
/// their boxes or classes, into one PNG file. Fewer when the run is shorter. Returns how many.
std::int64_t save_augmented_sheet(data::LoaderSpec spec, std::int64_t count, const RunSetup& setup,
                                  const std::filesystem::path& path);

}  // namespace lantern::train
