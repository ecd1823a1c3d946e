#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/flags.hpp"
#include "cli/terminal.hpp"
#include "data/lists.hpp"
#include "exec/model.hpp"
#include "layers/network.hpp"

// What the subverbs of `detector` share.
namespace lantern::cli {

std::span<const Flag> detector_flags();
std::span<const Flag> detect_flags();

/// The files that name a detector, read and checked against each other.
struct DetectorFiles {
  data::DataFile data_file;
  layers::Network network;  ///< for inference: batch 1
  std::vector<std::string> names;
  int classes = 0;
};
/// Warnings go to the terminal; throws for what cannot be used.
DetectorFiles read_detector_files(const std::string& data_path, const std::string& cfg_path,
                                  Terminal& terminal);

/// The network with its weights, ready for -batch images a pass; says what it loads.
std::unique_ptr<exec::Model> load_detector(const DetectorFiles& files, const std::string& weights,
                                           const Arguments& arguments, Terminal& terminal);

/// The list behind `valid`, or `train` when there is none (as Darknet does; said once).
std::filesystem::path validation_list(const data::DataFile& file, Terminal& terminal);

int compute_threads(const Arguments& arguments);
int loader_threads(const Arguments& arguments);
/// Refuses every -precision but fp32 by name.
void check_precision(const Arguments& arguments);

/// Says how many images were left out, and gives the exit code of a run that had to.
int bad_images_code(std::int64_t bad, std::int64_t total, const Arguments& arguments,
                    Terminal& terminal);

int run_detector_train(const Arguments& arguments, Terminal& terminal);
int run_detector_test(const Arguments& arguments, Terminal& terminal);
int run_detector_map(const Arguments& arguments, Terminal& terminal);
int run_detector_valid(const Arguments& arguments, Terminal& terminal);
int run_detect(const Arguments& arguments, Terminal& terminal);

}  // namespace lantern::cli
