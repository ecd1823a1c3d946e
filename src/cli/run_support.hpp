#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/flags.hpp"
#include "cli/terminal.hpp"
#include "data/lists.hpp"
#include "exec/model.hpp"
#include "layers/network.hpp"

// What the verbs that run a network share.
namespace lantern::cli {

/// The network with its weights, ready for -batch images a pass; says what it loads.
std::unique_ptr<exec::Model> load_for_inference(const layers::Network& network,
                                                const std::string& weights,
                                                const Arguments& arguments, Terminal& terminal);

/// The list behind `valid`, or `train` when there is none (as Darknet does; said once).
std::filesystem::path validation_list(const data::DataFile& file, Terminal& terminal);

/// The row of -threads, for compute_threads().
constexpr Flag threads_flag(std::string_view used_by = {}) {
  return {.name = "threads",
          .kind = ValueKind::kInt,
          .value = "N",
          .doc = "compute threads (default the cores that may be used)",
          .used_by = used_by,
          .min = 1,
          .max = 1024};
}
int compute_threads(const Arguments& arguments);
int loader_threads(const Arguments& arguments);
/// Refuses every -precision but fp32 by name.
void check_precision(const Arguments& arguments);

/// Says how many images were left out, and gives the exit code of a run that had to.
int bad_images_code(std::int64_t bad, std::int64_t total, const Arguments& arguments,
                    Terminal& terminal);

/// Throws kInterrupted after Ctrl-C.
void stop_if_interrupted(const Terminal& terminal);
/// -json: text for people moves to standard error, or the file is proven to be writable.
void reserve_json(const Arguments& arguments, Terminal& terminal);

}  // namespace lantern::cli
