#include "train/run_setup.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <type_traits>
#include <variant>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "data/labels.hpp"

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
                "this cfg "
                "has none");
  }
  return *head;
}

// Makes the folder when it is missing and proves with a file of its own that it can be written.
fs::path prepare_backup(const fs::path& folder, Console& console) {
  std::error_code code;
  if (!fs::exists(folder, code)) {
    fs::create_directories(folder, code);
    if (code) {
      throw Error(ErrorCode::kResource, folder.string(), "the backup folder cannot be made: {}",
                  code.message());
    }
    console.notice(fmt::format("made the backup folder {}", folder.string()));
  }
  const fs::path probe = folder / fmt::format(".lantern-{}", getpid());
  const int descriptor = open(probe.c_str(), O_CREAT | O_WRONLY | O_EXCL, 0600);
  if (descriptor < 0) {
    throw Error(ErrorCode::kResource, folder.string(), "the backup folder cannot be written: {}",
                std::strerror(errno));
  }
  close(descriptor);
  fs::remove(probe, code);
  return folder;
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

namespace {

// Keys that choose how to compute, not what: they change no result, so old cfgs keep working.
void name_idle_keys(const layers::NetSpec& net, Console& console) {
  if (net.try_fix_nan != 0)
    console.notice("try_fix_nan: values are not replaced; on_nan= says what a NaN does");
  if (net.cache != layers::Cache::kNone)
    console.notice("cache: images are decoded anew each time in this version");
}

}  // namespace

RunSetup set_up_run(const TrainSettings& settings, Console& console) {
  RunSetup run;
  run.network = layers::load_network_file(settings.cfg_file);
  name_idle_keys(run.network.net, console);
  Diagnostics diagnostics;
  run.data_file = data::read_data_file(settings.data_file, diagnostics);
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

  const std::string file_name = fs::path(settings.cfg_file).filename().string();
  run.base = file_name.substr(0, file_name.find('.'));
  run.backup = prepare_backup(run.data_file.file("backup", "/backup/"), console);
  run.seed = settings.seed.value_or(static_cast<std::uint64_t>(run.network.net.seed));
  run.augment = augment_of(run.network.net, head, settings, console);

  // Both lists are read before anything is made: an empty validation list must not surface hours
  // later.
  const fs::path train_list = run.data_file.file("train", "data/train.txt");
  if (settings.map) {
    if (!run.data_file.has("valid")) {
      log::warning("{} has no valid= line: the train list is used for mAP", settings.data_file);
      run.valid_list = train_list;
    } else {
      run.valid_list = run.data_file.file("valid");
    }
    static_cast<void>(data::read_image_list(run.valid_list));
  }
  run.dataset =
      read_dataset(train_list, run.classes, run.network.net, settings, run.backup, console);
  const std::int64_t max_batches = run.network.net.max_batches;
  run.save_weights = run.data_file.integer("saveweights", max_batches < 10000 ? 1000 : 10000, 1);
  run.save_last = run.data_file.integer("savelast", 100, 1);
  return run;
}

}  // namespace lantern::train
