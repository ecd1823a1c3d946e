#pragma once

#include <span>
#include <string>

#include "cli/flags.hpp"
#include "cli/run_support.hpp"
#include "cli/terminal.hpp"
#include "data/lists.hpp"
#include "layers/network.hpp"

// What the subverbs of `classifier` share.
namespace lantern::cli {

std::span<const Flag> classifier_flags();
std::span<const Flag> classify_flags();

/// The files that name a classifier, read and checked against each other.
struct ClassifierFiles {
  data::DataFile data_file;
  layers::Network network;  ///< for inference: batch 1
  int classes = 0;
};
/// Warnings go to the terminal; throws for what cannot be used.
ClassifierFiles read_classifier_files(const std::string& data_path, const std::string& cfg_path,
                                      Terminal& terminal);

int run_classifier_train(const Arguments& arguments, Terminal& terminal);
int run_classifier_predict(const Arguments& arguments, Terminal& terminal);
/// Middle of the picture; ten windows; all of it, stretched.
int run_classifier_valid(const Arguments& arguments, Terminal& terminal);
int run_classifier_valid10(const Arguments& arguments, Terminal& terminal);
int run_classifier_validcrop(const Arguments& arguments, Terminal& terminal);
/// Five sizes of the network, plain and mirrored.
int run_classifier_validmulti(const Arguments& arguments, Terminal& terminal);
int run_classify(const Arguments& arguments, Terminal& terminal);

}  // namespace lantern::cli
