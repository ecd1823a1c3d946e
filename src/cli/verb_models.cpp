#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "cfg/document.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "graph/saved.hpp"
#include "layers/compatibility.hpp"
#include "layers/lower.hpp"

namespace lantern::cli {

namespace {

namespace fs = std::filesystem;

// cfg files by the name they get in the table; of equal names the first that is given.
std::map<std::string, fs::path> files_of(std::span<const std::string> arguments) {
  std::map<std::string, fs::path> files;
  for (const std::string& argument : arguments) {
    if (!fs::is_directory(argument)) {
      files.try_emplace(fs::path(argument).filename().string(), argument);
      continue;
    }
    std::size_t found = 0;
    for (const auto& entry : fs::recursive_directory_iterator(argument)) {
      if (entry.path().extension() != ".cfg") continue;
      files.try_emplace(fs::relative(entry.path(), argument).generic_string(), entry.path());
      ++found;
    }
    if (found == 0) throw Error(ErrorCode::kInvalidConfig, argument, "has no cfg files in it");
  }
  return files;
}

// The first part of a message, for a cell of the table.
std::string brief(std::string_view message) {
  constexpr std::string_view kError = "error: ";
  if (message.starts_with(kError)) message.remove_prefix(kError.size());
  message = message.substr(0, message.find("; "));
  std::string text;
  for (const char c : readable(message)) text += c == '|' ? std::string("\\|") : std::string(1, c);
  return text;
}

struct Fate {
  std::string refusal;             // empty: none
  Bytes saved_bytes_of_image = 0;  // of training
};

Fate lower_one(const layers::Network& network, bool training) {
  const std::int64_t sequence = network.net.time_steps;
  try {
    const layers::Lowered lowered = layers::lower(
        network, {.training = training, .mini_batch = sequence, .forward_batch = training ? 0 : 1});
    return {"", graph::saved_bytes(lowered.graph) / sequence};
  } catch (const Error& error) {
    // That a network is refused is an answer here; our own faults are not.
    if (error.code() == ErrorCode::kInternal) throw;
    return {brief(error.message()), 0};
  }
}

// Keys of [net] that a training has to do without.
std::vector<std::string> refused_keys(const std::string& path, std::string_view text) {
  Diagnostics ignored;  // told when the network was loaded
  const cfg::Document document = cfg::parse(path, text, ignored);
  const std::vector<cfg::KeyInfo> keys = layers::section_reference().front().keys;
  std::vector<std::string> refused;
  for (const cfg::Option& option : document.sections.front().options) {
    const layers::KeyStatus* status = layers::find_status("net", option.key);
    if (status == nullptr || status->effect != layers::Effect::kRefused) continue;
    const auto key = std::ranges::find(keys, option.key, &cfg::KeyInfo::name);
    const bool is_default =
        key->default_text == option.value ||
        (parse_float(option.value) && parse_float(option.value) == parse_float(key->default_text));
    if (!is_default) refused.push_back(fmt::format("`{}`", option.key));
  }
  return refused;
}

std::string training_status(const layers::Network& network, const std::string& text,
                            const Fate& training) {
  if (!training.refusal.empty())
    return fmt::format("runs; training is refused: {}", training.refusal);
  if (network.net.time_steps > 1 || network.net.width == 0)
    return "runs; no verb feeds its sequences";
  const std::vector<std::string> keys = refused_keys(network.path, text);
  return keys.empty() ? "runs and trains"
                      : fmt::format("runs; trains without {}", fmt::join(keys, ", "));
}

std::string row_of(const std::string& name, const fs::path& path) {
  const std::string text = read_file(path);
  Diagnostics diagnostics;
  const layers::Network network = layers::load_network(name, text, diagnostics);
  const auto fault = std::ranges::find(diagnostics.entries(), Diagnostics::Severity::kError,
                                       &Diagnostics::Entry::severity);
  if (fault != diagnostics.entries().end()) {
    return fmt::format("| `{}` | | | | | | | refused: {} |\n", name, brief(fault->message));
  }
  const layers::Dims input = network.input();
  const std::int64_t outputs = network.average_outputs();
  std::string row =
      fmt::format("| `{}` | {} | {} | {} | {:.3f} | {} |", name,
                  network.net.width > 0 ? fmt::format("{}x{}x{}", input.w, input.h, input.c)
                                        : fmt::format("{}", input.c),
                  network.layers.size(), network.parameters(), network.bflops(),
                  outputs > 0 ? fmt::format("{}", outputs) : "");
  const Fate inference = lower_one(network, false);
  if (!inference.refusal.empty()) return row + fmt::format(" | refused: {} |\n", inference.refusal);
  const Fate training = lower_one(network, true);
  return row + fmt::format(" {} | {} |\n",
                           training.refusal.empty() ? format_bytes(training.saved_bytes_of_image)
                                                    : std::string(),
                           training_status(network, text, training));
}

}  // namespace

int run_models(const Arguments& arguments, Terminal& terminal) {
  const std::map<std::string, fs::path> files = files_of(arguments.positionals);
  std::string page =
      "# Networks\n\n"
      "Written by `lantern models FOLDER...`; do not edit. Layers, parameters (floats of a weights "
      "file), operations of an image in units of 10^9 and the mean of the outputs of a layer are "
      "counted as Darknet counts them, at the size of the cfg. *Saved* is what the forward pass of "
      "training leaves for the backward pass, for one image, were nothing computed a second time; "
      "a "
      "budget (`memory=`) makes it less.\n\n"
      "| cfg | input | layers | parameters | BFLOPs | mean outputs | saved | status |\n"
      "|---|---|---:|---:|---:|---:|---:|---|\n";
  std::int64_t done = 0;
  for (const auto& [name, path] : files) {
    terminal.progress("networks", ++done, static_cast<std::int64_t>(files.size()), 0, "files");
    page += row_of(name, path);
  }
  terminal.print(page);
  return 0;
}

}  // namespace lantern::cli
