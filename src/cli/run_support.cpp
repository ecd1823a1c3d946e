#include "cli/run_support.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/file.hpp"
#include "device/machine.hpp"
#include "io/model_weights.hpp"

namespace lantern::cli {

std::unique_ptr<exec::Model> load_for_inference(const layers::Network& network,
                                                const std::string& weights,
                                                const Arguments& arguments, Terminal& terminal) {
  check_precision(arguments);
  terminal.notice(layers::layer_table(network));
  auto model = std::make_unique<exec::Model>(
      network, exec::ModelOptions{.training = false,
                                  .forward_batch = arguments.integer("batch"),
                                  .threads = compute_threads(arguments),
                                  .fold = true});
  Diagnostics warnings;
  terminal.notice(fmt::format("Loading weights from {}...", weights));
  const io::LoadedWeights loaded =
      io::load_weights(*model, weights, io::Purpose::kEvaluation, warnings);
  for (const Diagnostics::Entry& entry : warnings.entries()) terminal.warning(entry.to_string());
  // Darknet's words; "Kilo-batches_64" are thousands of batches of 64 images.
  terminal.notice(fmt::format(" seen {}, trained: {} K-images ({} Kilo-batches_64) ",
                              loaded.header.has_wide_seen() ? 64 : 32, loaded.header.seen / 1000,
                              loaded.header.seen / 64000));
  terminal.notice(fmt::format("Done! Loaded {} layers from weights-file ", network.layers.size()));
  return model;
}

std::filesystem::path validation_list(const data::DataFile& file, Terminal& terminal) {
  if (file.has("valid")) return file.file("valid");
  if (!file.has("train")) {
    throw Error(ErrorCode::kInvalidConfig, file.path.string(),
                "has neither a valid= nor a train= line; add valid = LIST");
  }
  terminal.warning(
      fmt::format("{}: has no valid= line; the train list is used", file.path.string()));
  return file.file("train");
}

int compute_threads(const Arguments& arguments) {
  return static_cast<int>(arguments.given_integer("threads").value_or(device::usable_cores()));
}

int loader_threads(const Arguments& arguments) {
  return static_cast<int>(
      arguments.given_integer("loader_threads").value_or(std::max(1, device::usable_cores() / 2)));
}

void check_precision(const Arguments& arguments) {
  if (const std::string precision = arguments.text("precision"); precision != "fp32") {
    throw Error(ErrorCode::kUsage, "",
                "-precision {} is not available: this version computes in fp32", precision);
  }
}

int bad_images_code(std::int64_t bad, std::int64_t total, const Arguments& arguments,
                    Terminal& terminal) {
  if (bad == 0) return 0;
  const bool tolerated = arguments.has("tolerate_bad_images");
  terminal.error(fmt::format("{} of {} images could not be used and were left out{}", bad, total,
                             tolerated ? " (tolerated, as asked)" : ""));
  return tolerated ? 0 : exit_code(ErrorCode::kInvalidData);
}

void stop_if_interrupted(const Terminal& terminal) {
  if (terminal.interrupted()) throw Error(ErrorCode::kInterrupted, "", "interrupted");
}

void reserve_json(const Arguments& arguments, Terminal& terminal) {
  if (!arguments.has("json")) return;
  if (const std::string file = arguments.text("json"); file.empty()) {
    terminal.reserve_output();
  } else {
    check_writable(file);
  }
}

}  // namespace lantern::cli
