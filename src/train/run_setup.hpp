#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/augment.hpp"
#include "data/lists.hpp"
#include "data/loader.hpp"
#include "layers/network.hpp"
#include "train/train_settings.hpp"

namespace lantern::train {

/// Everything a detector training reads before its first iteration, checked.
struct RunSetup {
  layers::Network network;
  data::DataFile data_file;
  std::vector<std::string> names;
  std::string base;              ///< cfg name up to its first dot: the stem of checkpoint names
  std::filesystem::path backup;  ///< exists and can be written
  std::shared_ptr<const data::Dataset> dataset;
  data::AugmentSpec augment;
  float random = 0;  ///< multi-scale range of the last head
  int classes = 0;
  std::uint64_t seed = 0;
  std::filesystem::path valid_list;  ///< empty unless evaluation is on
  std::int64_t save_weights = 10000;
  std::int64_t save_last = 100;
};

/// Throws an Error that says what is wrong and where; notices go to the console.
RunSetup set_up_run(const TrainSettings& settings, Console& console);

}  // namespace lantern::train
