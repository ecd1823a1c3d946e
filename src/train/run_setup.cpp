#include "train/run_setup.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/file.hpp"
#include "layers/compatibility.hpp"
#include "train/resume.hpp"
#include "train/schedule.hpp"

namespace lantern::train {

namespace {

namespace fs = std::filesystem;

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

// Keys that choose how to compute, not what: they change no result, so old cfgs keep working.
void name_idle_keys(const layers::NetSpec& net, Console& console) {
  if (net.try_fix_nan != 0)
    console.notice("try_fix_nan: values are not replaced; on_nan= says what a NaN does");
  if (net.cache != layers::Cache::kNone)
    console.notice("cache: images are decoded anew each time in this version");
}

// Refuses by name what this version does not train with.
void check_settings(const layers::Network& network) {
  const layers::NetSpec& net = network.net;
  check(schedule_of(net), network.path);
  const auto sequences = [&](bool asked, const char* key) {
    if (!asked) return;
    throw Error(ErrorCode::kInvalidConfig, network.path,
                "error: [net] {} is not supported by this verb: it loads single pictures, no "
                "sequences of frames; remove the key",
                key);
  };
  sequences(net.time_steps > 1, "time_steps");
  sequences(net.track != 0, "track");
  const auto no = [&](bool asked, std::string_view key) {
    if (asked) layers::refuse_net_key(network.path, key);
  };
  no(net.contrastive != 0, "contrastive");
  no(net.loss_scale != 1, "loss_scale");
}

}  // namespace

RunSetup read_run_files(const TrainSettings& settings, Console& console, Diagnostics& diagnostics) {
  RunSetup run;
  run.network = layers::load_network_file(settings.cfg_file);
  name_idle_keys(run.network.net, console);
  run.data_file = data::read_data_file(settings.data_file, diagnostics);
  check_settings(run.network);
  const std::string file_name = fs::path(settings.cfg_file).filename().string();
  run.base = file_name.substr(0, file_name.find('.'));
  // What comes through a pipe can be read once only.
  if (kind_unless_file(settings.cfg_file).empty())
    run.cfg_hash = io::text_hash(read_file(settings.cfg_file, 64_MiB));
  run.seed = settings.seed.value_or(static_cast<std::uint64_t>(run.network.net.seed));
  return run;
}

void prepare_output(RunSetup& run, const TrainSettings& settings, Console& console) {
  run.backup = prepare_backup(run.data_file.file("backup", "/backup/"), console);
  if (!settings.resume) return;
  run.resumed = find_state(run, settings);
  check_state(run, settings, console);
  run.seed = run.resumed->state.seed;
}

void check_some_image_exists(const fs::path& list, std::span<const std::string> images,
                             std::string_view flag) {
  std::error_code code;
  const auto there = [&](const std::string& image) { return fs::exists(image, code); };
  if (std::ranges::none_of(images, there)) {
    throw Error(ErrorCode::kInvalidData, list.string(),
                "none of its {} images is there, the first is {}; {} needs them", images.size(),
                images.front(), flag);
  }
}

layers::OnNan on_nan(const layers::NetSpec& net, const TrainSettings& settings) {
  if (settings.on_nan.empty()) return net.on_nan;
  if (settings.on_nan == "rollback") return layers::OnNan::kRollback;
  return settings.on_nan == "skip" ? layers::OnNan::kSkip : layers::OnNan::kStop;
}

}  // namespace lantern::train
