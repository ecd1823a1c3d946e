#pragma once

#include "cli/flags.hpp"
#include "cli/terminal.hpp"
#include "train/train_settings.hpp"

// What `detector train` and `classifier train` share.
namespace lantern::cli {

/// The flags that both have, and the positionals <data> <cfg> [weights].
train::TrainSettings read_train_settings(const Arguments& arguments);

using TrainNetwork = train::TrainResult(const train::TrainSettings&, train::Console&);
/// Trains, and says where weights and chart are. Returns the exit code.
int run_training(TrainNetwork* train, const train::TrainSettings& settings,
                 const Arguments& arguments, Terminal& terminal);

}  // namespace lantern::cli
