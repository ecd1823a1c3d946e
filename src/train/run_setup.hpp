#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/lists.hpp"
#include "data/sample_maker.hpp"
#include "io/training_state.hpp"
#include "layers/network.hpp"
#include "train/train_settings.hpp"
#include "train/training_evaluation.hpp"

namespace lantern::train {

enum class NetworkKind : std::uint8_t { kDetector, kClassifier };

/// A state file and what its header says.
struct SavedState {
  std::filesystem::path path;
  io::TrainingState state;
};

/// Everything a training reads before its first iteration, checked.
struct RunSetup {
  NetworkKind kind = NetworkKind::kDetector;
  /// No end: a classifier with max_batches=0 trains until it is interrupted, as in Darknet.
  bool is_endless() const { return network.net.max_batches == 0; }
  layers::Network network;
  data::DataFile data_file;
  std::vector<std::string> names;  ///< of the classes
  std::string base;                ///< cfg name up to its first dot: the stem of checkpoint names
  std::filesystem::path backup;    ///< exists and can be written
  std::shared_ptr<const data::SampleMaker> samples;
  float random = 0;  ///< multi-scale range of the last head
  int classes = 0;
  std::uint64_t seed = 0;
  std::string cfg_hash;
  std::optional<SavedState> resumed;               ///< what the run goes on from
  std::shared_ptr<TrainingEvaluation> evaluation;  ///< null: off
  std::int64_t save_weights = 10000;
  std::int64_t save_last = 100;

  double images_per_epoch() const { return static_cast<double>(samples->images().size()); }
  double iterations_per_epoch() const {
    return images_per_epoch() / static_cast<double>(network.net.batch);
  }
};

/// What every kind of network needs: cfg and .data file, and what [net] asks for that is refused.
/// Warnings about the .data file stay in `diagnostics`. Throws an Error that says what is wrong and
/// where; notices go to the console.
RunSetup read_run_files(const TrainSettings& settings, Console& console, Diagnostics& diagnostics);
/// The folder of `backup=`, which is made when it is missing and proven to be writable; with
/// -resume the state in it that the run goes on from, and the seed of that run.
void prepare_output(RunSetup& run, const TrainSettings& settings, Console& console);
/// Throws kInvalidData unless one of the images is there: known now and not after hours.
/// `flag` is what needs them.
void check_some_image_exists(const std::filesystem::path& list, std::span<const std::string> images,
                             std::string_view flag);

/// What a loss that is not finite leads to; the flag decides before the key.
layers::OnNan on_nan(const layers::NetSpec& net, const TrainSettings& settings);

}  // namespace lantern::train
