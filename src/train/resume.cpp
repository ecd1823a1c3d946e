#include "train/resume.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"

namespace lantern::train {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kEnding = ".state";

// The newest that is whole: a damaged one is passed over for an older. Files can be large, so only
// the one that is taken is read to its end.
SavedState newest_state(const fs::path& folder, const std::string& base) {
  std::vector<std::pair<std::int64_t, fs::path>> found;  // by iteration
  const auto pass_over = [](const Error& error) {
    log::warning("{}; it is passed over", error.what());
  };
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, code)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(base + "_") || !name.ends_with(kEnding)) continue;
    try {
      found.emplace_back(io::read_state_header(entry.path()).iteration, entry.path());
    } catch (const Error& error) {
      pass_over(error);
    }
  }
  std::ranges::sort(found, std::greater{});
  for (const auto& [iteration, path] : found) {
    try {
      return {path, io::read_state(path)};
    } catch (const Error& error) {
      pass_over(error);
    }
  }
  throw Error(ErrorCode::kInvalidData, folder.string(),
              "holds no state file {}_*.state that -resume could go on from: leave -resume out to "
              "start, or give the file (-resume=FILE)",
              base);
}

}  // namespace

fs::path state_beside(fs::path weights) { return weights.replace_extension(kEnding); }

SavedState find_state(const RunSetup& run, const TrainSettings& settings) {
  if (settings.clear) {
    throw Error(ErrorCode::kUsage, "",
                "-clear starts at iteration 0 and -resume goes on from a state: give one of them");
  }
  fs::path path = *settings.resume;
  if (path.empty()) path = settings.weights_file;
  if (path.empty()) return newest_state(run.backup, run.base);
  if (path.extension() == ".weights") path = state_beside(path);
  return {path, io::read_state(path)};
}

void check_state(const RunSetup& run, const TrainSettings& settings, Console& console) {
  const auto& [path, state] = *run.resumed;
  const layers::NetSpec& net = run.network.net;
  const std::string where = path.string();
  if (state.batch != net.batch) {
    throw Error(ErrorCode::kInvalidData, where,
                "was written with batch={}, {} has batch={}: put the old batch back, or start from "
                "its .weights file",
                state.batch, settings.cfg_file, net.batch);
  }
  if (settings.seed && *settings.seed != state.seed) {
    throw Error(ErrorCode::kUsage, "", "{} is of a run with seed {}: leave -seed {} out", where,
                state.seed, *settings.seed);
  }
  if (!run.is_endless() && state.iteration >= net.max_batches) {
    throw Error(ErrorCode::kInvalidData, where,
                "is of iteration {}, which is the end (max_batches={}): raise max_batches in {} to "
                "train on",
                state.iteration, net.max_batches, settings.cfg_file);
  }
  console.notice(
      fmt::format("resuming from {}: iteration {}, seed {}", where, state.iteration, state.seed));
  if (state.cfg_hash != run.cfg_hash)
    console.notice(fmt::format("{} has changed since then: the run goes on with what it says now",
                               settings.cfg_file));
  if (state.threads != settings.threads) {
    console.notice(fmt::format(
        "it was trained with {} threads, now there are {}: sums are made in another order, so the "
        "last bits differ from an unbroken run (-threads {} gives the same)",
        state.threads, settings.threads, state.threads));
  }
}

}  // namespace lantern::train
