#include "cli/detector.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "device/machine.hpp"
#include "io/model_weights.hpp"

namespace lantern::cli {

namespace {

const layers::Layer& last_detection_layer(const layers::Network& network) {
  for (auto layer = network.layers.rbegin(); layer != network.layers.rend(); ++layer) {
    if (layers::detection_keys(*layer)) return *layer;
  }
  throw Error(ErrorCode::kInvalidConfig, network.path,
              "error: the cfg has no detection layer ([yolo], [Gaussian_yolo], [region], "
              "[detection]); this "
              "verb needs one");
}

}  // namespace

DetectorFiles read_detector_files(const std::string& data_path, const std::string& cfg_path,
                                  Terminal& terminal) {
  DetectorFiles files;
  files.network =
      layers::load_network_file(cfg_path, {.batch = 1, .subdivisions = 1, .time_steps = 1});
  Diagnostics diagnostics;
  files.data_file = data::read_data_file(data_path, diagnostics);
  const layers::Layer& head = last_detection_layer(files.network);
  const int classes = layers::detection_keys(head)->classes;
  const std::string& where = head.where;
  files.classes = classes;
  const std::filesystem::path names = files.data_file.file("names", "data/names.list");
  if (files.data_file.has("names") || std::filesystem::exists(names)) {
    files.names = data::read_names(names);
    data::check_class_counts(classes, where, &files.data_file, &files.names, names, diagnostics);
  } else {
    data::check_class_counts(classes, where, &files.data_file, nullptr, {}, diagnostics);
    diagnostics.warning(data_path, "has no names= line; classes are shown by number");
    for (int c = 0; c < classes; ++c) files.names.push_back(std::to_string(c));
  }
  for (const Diagnostics::Entry& entry : diagnostics.entries()) {
    terminal.warning(entry.where + ": " + entry.message);
  }
  return files;
}

std::unique_ptr<exec::Model> load_detector(const DetectorFiles& files, const std::string& weights,
                                           const Arguments& arguments, Terminal& terminal) {
  check_precision(arguments);
  terminal.notice(layers::layer_table(files.network));
  auto model = std::make_unique<exec::Model>(
      files.network, exec::ModelOptions{.training = false,
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
  terminal.notice(
      fmt::format("Done! Loaded {} layers from weights-file ", files.network.layers.size()));
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

}  // namespace lantern::cli
