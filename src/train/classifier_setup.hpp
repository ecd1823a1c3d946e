#pragma once

#include <string>
#include <vector>

#include "data/lists.hpp"
#include "layers/network.hpp"
#include "train/run_setup.hpp"

namespace lantern::train {

/// `classes=` of the .data file (2 when absent). Throws kInvalidConfig when the network is no
/// classifier of that many classes.
int classes_of_classifier(const layers::Network& network, const data::DataFile& file);
/// `top=` of the .data file, at most all classes.
int shown_classes(const data::DataFile& file, int classes, int otherwise);
/// A file of one name a class, behind `key`; as many as there are classes, else an Error that names
/// both numbers.
std::vector<std::string> read_class_names(const data::DataFile& file, const std::string& key,
                                          int classes);
inline constexpr const char* kUsualLabels = "data/labels.list";
inline constexpr const char* kUsualClassList = "data/train.list";

/// Everything `classifier train` reads before its first iteration, checked, before anything is
/// measured or planned.
RunSetup set_up_classifier(const TrainSettings& settings, Console& console);

}  // namespace lantern::train
