#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/flags.hpp"
#include "cli/run_support.hpp"
#include "cli/terminal.hpp"
#include "data/lists.hpp"
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

int run_detector_train(const Arguments& arguments, Terminal& terminal);
int run_detector_test(const Arguments& arguments, Terminal& terminal);
int run_detector_map(const Arguments& arguments, Terminal& terminal);
int run_detector_valid(const Arguments& arguments, Terminal& terminal);
int run_detector_recall(const Arguments& arguments, Terminal& terminal);
int run_detector_calc_anchors(const Arguments& arguments, Terminal& terminal);
int run_detect(const Arguments& arguments, Terminal& terminal);

}  // namespace lantern::cli
