#include "train/detector_setup.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <variant>

#include "core/error.hpp"
#include "core/log.hpp"
#include "data/detector_samples.hpp"
#include "train/map_evaluation.hpp"

namespace lantern::train {

namespace {

namespace fs = std::filesystem;

// The settings of the last one hold for the whole network, as in Darknet.
layers::DetectionKeys last_head(const layers::Network& network) {
  std::optional<layers::DetectionKeys> head;
  for (const layers::Layer& layer : network.layers) {
    if (const auto keys = layers::detection_keys(layer)) head = keys;
  }
  if (!head) {
    throw Error(ErrorCode::kInvalidConfig, network.path,
                "error: a detector needs a [yolo], [Gaussian_yolo], [region] or [detection] layer; "
                "this cfg has none");
  }
  return *head;
}

data::AugmentSpec augment_of(const layers::NetSpec& net, const layers::DetectionKeys& head,
                             const TrainSettings& settings, Console& console) {
  std::vector<std::string> messages;
  data::AugmentSpec augment;
  augment.net_w = net.width;
  augment.net_h = net.height;
  augment.channels = net.channels;
  augment.classes = head.classes;
  augment.max_boxes = head.max;
  augment.jitter = head.jitter;
  augment.resize = head.resize;
  augment.flip = net.flip != 0;
  augment.hue = net.hue;
  augment.saturation = net.saturation;
  augment.exposure = net.exposure;
  augment.blur = net.blur;
  augment.gaussian_noise = static_cast<float>(net.gaussian_noise);
  augment.mix = data::detector_mix(net.mixup, net.cutmix != 0, net.mosaic != 0, messages);
  augment.mosaic_bound = net.mosaic_bound != 0;
  augment.letter_box = settings.letter_box.value_or(net.letter_box != 0);
  for (const std::string& message : messages) console.notice(message);
  if (net.angle != 0 || net.aspect != 1) {
    console.notice(
        "angle and aspect are not used in detector training (as in Darknet): they are classifier "
        "keys");
  }
  return augment;
}

std::shared_ptr<const data::Dataset> read_dataset(const fs::path& list_path, int classes,
                                                  const layers::NetSpec& net,
                                                  const TrainSettings& settings,
                                                  const fs::path& backup, Console& console) {
  const data::ImageList list = data::read_image_list(list_path);
  data::LabelSet labels = data::scan_labels(
      list, {.classes = classes,
             .threads = std::max(settings.threads, settings.loader_threads),
             .missing_is_error = net.missing_labels == layers::MissingLabels::kError,
             .strict = settings.strict});
  const std::string summary = labels.summary();
  if (!summary.empty()) console.notice(summary);
  labels.write_bad_labels(backup / "bad_labels.txt");
  data::check_bad_data_limit(labels, static_cast<double>(net.bad_data_limit) / 100);
  return std::make_shared<const data::Dataset>(data::make_dataset(list, std::move(labels)));
}

}  // namespace

RunSetup set_up_detector(const TrainSettings& settings, Console& console) {
  Diagnostics diagnostics;
  RunSetup run = read_run_files(settings, console, diagnostics);
  if (run.network.net.max_batches <= 0) {
    throw Error(
        ErrorCode::kInvalidConfig, run.network.path,
        "error: [net] max_batches is {}, want the number of iterations to train (for example {})",
        run.network.net.max_batches, 6000);
  }
  const layers::DetectionKeys head = last_head(run.network);
  run.classes = head.classes;
  run.random = head.random;

  const fs::path names_path = run.data_file.file("names", "data/names.list");
  if (run.data_file.has("names") || fs::exists(names_path)) {
    run.names = data::read_names(names_path);
    data::check_class_counts(run.classes, head.where, &run.data_file, &run.names, names_path,
                             diagnostics);
  } else {
    data::check_class_counts(run.classes, head.where, &run.data_file, nullptr, {}, diagnostics);
    for (int i = 0; i < run.classes; ++i) run.names.push_back(fmt::format("class {}", i));
  }
  diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  for (const Diagnostics::Entry& entry : diagnostics.entries())
    log::warning("{}: {}", entry.where, entry.message);

  prepare_output(run, settings, console);
  const data::AugmentSpec augment = augment_of(run.network.net, head, settings, console);

  // Both lists are read before anything is made: an empty validation list must not surface hours
  // later.
  const fs::path train_list = run.data_file.file("train", "data/train.txt");
  fs::path valid_list = train_list;
  if (settings.map) {
    if (run.data_file.has("valid")) {
      valid_list = run.data_file.file("valid");
    } else {
      log::warning("{} has no valid= line: the train list is used for mAP", settings.data_file);
    }
    check_some_image_exists(valid_list, data::read_image_list(valid_list).images, "-map");
  }
  run.samples = std::make_shared<data::DetectorSamples>(
      read_dataset(train_list, run.classes, run.network.net, settings, run.backup, console),
      augment);
  if (settings.map) {
    run.evaluation = std::make_shared<MapEvaluation>(run, settings, valid_list, augment.letter_box);
  }
  const std::int64_t max_batches = run.network.net.max_batches;
  run.save_weights = run.data_file.integer("saveweights", max_batches < 10000 ? 1000 : 10000, 1);
  run.save_last = run.data_file.integer("savelast", 100, 1);
  return run;
}

}  // namespace lantern::train
