#include <fmt/format.h>

#include <filesystem>

#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "io/average.hpp"
#include "io/denormalize.hpp"
#include "io/model_weights.hpp"
#include "layers/network.hpp"

// Verbs that make one weights file of others: `average`, `denormalize`.
namespace lantern::cli {

namespace {

namespace fs = std::filesystem;

void tell(const Diagnostics& warnings, Terminal& terminal) {
  for (const Diagnostics::Entry& entry : warnings.entries()) terminal.warning(entry.to_string());
}

// Weights that a file does not hold have no mean.
void check_all_loaded(const layers::Network& network, const io::WeightsLayout& layout) {
  for (const io::WeightsLayer& layer : layout) {
    if (!layer.dontload && !layer.dontloadscales) continue;
    throw Error(ErrorCode::kInvalidConfig,
                network.layers[static_cast<std::size_t>(layer.layer)].where,
                "error: [{}] has {}=1, so not all of its weights are in the files; remove the key",
                layer.section, layer.dontload ? "dontload" : "dontloadscales");
  }
}

}  // namespace

int run_average(const Arguments& arguments, Terminal& terminal) {
  const std::vector<std::string>& words = arguments.positionals;
  const layers::Network network = layers::load_network_file(words[0]);
  const io::WeightsLayout layout = io::weights_layout(network);
  check_all_loaded(network, layout);
  check_writable(words[1]);
  const std::vector<fs::path> files(words.begin() + 2, words.end());
  Diagnostics warnings;
  const io::Weights mean = io::average_weights(files, layout, warnings);
  tell(warnings, terminal);
  io::write_weights(words[1], mean.header, layout, io::views_of(mean.values));
  terminal.notice(fmt::format("{}: the mean of {} files, {} layers with weights; seen as in {}",
                              words[1], files.size(), mean.layers_loaded, words[2]));
  return 0;
}

int run_denormalize(const Arguments& arguments, Terminal& terminal) {
  const std::vector<std::string>& words = arguments.positionals;
  const fs::path cfg_out =
      words.size() > 3 ? fs::path(words[3]) : fs::path(words[2]).replace_extension(".cfg");
  for (const fs::path& out : {fs::path(words[2]), cfg_out}) {
    for (const std::string& in : {words[0], words[1]}) {
      std::error_code no_such_file;
      if (!fs::equivalent(out, in, no_such_file)) continue;
      throw Error(ErrorCode::kUsage, "",
                  "{} would be written over what is read; give another name for the {}",
                  out.string(), out == cfg_out ? "cfg (fourth argument)" : "weights");
    }
  }
  if (cfg_out == fs::path(words[2])) {
    throw Error(ErrorCode::kUsage, "", "weights and cfg cannot both be written to {}", words[2]);
  }
  check_writable(cfg_out);
  Diagnostics warnings;
  const io::Denormalized plain =
      io::denormalize(words[0], read_file(words[0]), words[1], words[2], warnings);
  tell(warnings, terminal);
  write_file_atomically(cfg_out, plain.cfg);
  terminal.notice(fmt::format("{}, {}: {} batch norms are part of weights and biases", words[2],
                              cfg_out.string(), plain.folded));
  if (plain.kept > 0) {
    terminal.notice(fmt::format(
        "{} [batchnorm] sections stay: there are no weights before them to take them up",
        plain.kept));
  }
  return 0;
}

}  // namespace lantern::cli
