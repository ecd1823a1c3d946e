#include <fmt/format.h>

#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "io/model_weights.hpp"
#include "layers/network.hpp"

namespace lantern::cli {

int run_partial(const Arguments& arguments, Terminal& terminal) {
  const std::vector<std::string>& words = arguments.positionals;
  const layers::Network network = layers::load_network_file(words[0]);
  const auto layers_total = static_cast<std::int64_t>(network.layers.size());
  const auto n = parse_int(words[3]);
  if (!n || *n < 1 || *n > layers_total) {
    throw Error(ErrorCode::kUsage, "", "n is '{}', want 1 to {}, the layers of {} after [net]",
                words[3], layers_total, words[0]);
  }
  const io::WeightsLayout layout = io::weights_layout(network);
  Diagnostics warnings;
  const io::Weights weights =
      io::read_weights(words[1], layout, io::Purpose::kEvaluation, warnings, static_cast<int>(*n));
  for (const Diagnostics::Entry& entry : warnings.entries()) terminal.warning(entry.to_string());
  io::WeightsHeader header = weights.header;
  header.seen = 0;
  io::write_weights(words[2], header, layout, io::views_of(weights.values), static_cast<int>(*n));
  terminal.notice(fmt::format("{}: the first {} of {} layers of {}, {} of them with weights",
                              words[2], *n, layers_total, words[1], weights.layers_loaded));
  return 0;
}

int run_ops(const Arguments& arguments, Terminal& terminal) {
  const layers::Network network = layers::load_network_file(arguments.positionals[0]);
  std::string text;
  for (const layers::Layer& layer : network.layers) {
    if (layer.bflops == 0) continue;
    text += fmt::format("{:5} {:<16}{:>18.0f}\n", layer.index, layer.section, layer.bflops * 1e9);
  }
  text += fmt::format("Floating Point Operations: {:.0f}\n", network.bflops() * 1e9);
  text += fmt::format("Floating Point Operations: {:.2f} Bn\n", network.bflops());
  terminal.print(text);
  return 0;
}

}  // namespace lantern::cli
