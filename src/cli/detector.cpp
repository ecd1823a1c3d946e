#include "cli/detector.hpp"

#include "core/error.hpp"

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

}  // namespace lantern::cli
