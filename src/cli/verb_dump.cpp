#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cfg/document.hpp"
#include "cli/graph_output.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "device/machine.hpp"
#include "exec/model.hpp"
#include "layers/network.hpp"

namespace lantern::cli {

namespace {

constexpr std::array kDumpFlags{
    Flag{.name = "stage",
         .kind = ValueKind::kText,
         .value = "STAGE",
         .otherwise = "graph",
         .doc = "cfg, graph, training, kernels or program"},
    Flag{.name = "format",
         .kind = ValueKind::kText,
         .value = "FORM",
         .otherwise = "text",
         .doc = "stages graph and training: text, json, dot (graphviz) or svg (a drawing)"},
    Flag{.name = "mini_batch",
         .kind = ValueKind::kInt,
         .value = "N",
         .doc = "images of a mini-batch (default batch / subdivisions)",
         .min = 1,
         .max = 1 << 16},
    Flag{.name = "batch",
         .kind = ValueKind::kInt,
         .value = "N",
         .doc = "stages kernels and program: inference with N images instead of training",
         .min = 1,
         .max = 1 << 16},
    Flag{.name = "threads",
         .kind = ValueKind::kInt,
         .value = "N",
         .doc = "compute threads that kernels are chosen for (default cores)",
         .min = 1,
         .max = 1024},
};

// The sections as they were read: place, shape and the keys that the file gives.
std::string dump_cfg(const std::string& path) {
  const layers::Network network = layers::load_network_file(path);
  Diagnostics ignored;  // load_network_file has told them
  const cfg::Document document = cfg::parse(path, read_file(path), ignored);
  std::string out;
  for (std::size_t i = 0; i < document.sections.size(); ++i) {
    const cfg::Section& section = document.sections[i];
    if (i == 0) {
      const layers::Dims in = network.input();
      out += fmt::format("[{}]  # {}: input {}x{}x{}, mini-batch {}\n", section.name,
                         cfg::where(path, section.line), in.w, in.h, in.c, network.minibatch());
    } else {
      const layers::Layer& layer = network.layers[i - 1];
      out += fmt::format("\n[{}]  # layer {}, {}: {}x{}x{} -> {}x{}x{}, {} parameters\n",
                         layer.section, layer.index, cfg::where(path, section.line), layer.in.w,
                         layer.in.h, layer.in.c, layer.out.w, layer.out.h, layer.out.c,
                         layer.parameters);
    }
    for (const cfg::Option& option : section.options) {
      out += fmt::format("{}={}\n", option.key, option.value);
    }
  }
  return out;
}

constexpr std::array<std::string_view, 5> kStages{"cfg", "graph", "training", "kernels", "program"};
constexpr std::array<std::string_view, 4> kFormats{"text", "json", "dot", "svg"};

// A flag's word out of a list, or an error with the nearest.
std::string word_of(const Arguments& arguments, std::string_view flag,
                    std::span<const std::string_view> words) {
  const std::string word = arguments.text(flag);
  if (std::ranges::find(words, word) != words.end()) return word;
  const auto near = nearest(word, words);
  throw Error(ErrorCode::kUsage, "", "-{} is '{}', want {} or {}{}", flag, word,
              fmt::join(words.first(words.size() - 1), ", "), words.back(),
              near ? fmt::format("; did you mean {}?", *near) : "");
}

std::string text_of(const layers::Network& network, const graph::Graph& graph,
                    const std::string& format) {
  if (format == "json") return graph_json(network, graph);
  if (format == "dot") return graph_dot(network, graph);
  if (format == "svg") return graph_svg(network, graph);
  return graph.dump();
}

}  // namespace

std::span<const Flag> dump_flags() { return kDumpFlags; }

int run_dump(const Arguments& arguments, Terminal& terminal) {
  const std::string stage = word_of(arguments, "stage", kStages);
  const std::string format = word_of(arguments, "format", kFormats);
  if (format != "text" && stage != "graph" && stage != "training") {
    throw Error(ErrorCode::kUsage, "",
                "-format {} is for the stages graph and training; {} is text", format, stage);
  }
  const std::string& path = arguments.positionals.front();
  if (stage == "cfg") {
    terminal.print(dump_cfg(path));
    return 0;
  }
  const layers::Network network = layers::load_network_file(path);
  const bool inference = stage == "graph" || (arguments.has("batch") && stage != "training");
  const exec::ModelOptions options{
      .training = !inference,
      .mini_batch = arguments.given_integer("mini_batch").value_or(network.minibatch()),
      .forward_batch = inference ? arguments.given_integer("batch").value_or(1) : 0,
      .threads =
          static_cast<int>(arguments.given_integer("threads").value_or(device::usable_cores()))};
  if (stage == "graph" || stage == "training") {
    const layers::Lowered lowered =
        layers::lower(network, {.training = options.training,
                                .mini_batch = options.mini_batch,
                                .forward_batch = options.forward_batch});
    terminal.print(text_of(network, lowered.graph, format));
    return 0;
  }
  const exec::Compiled compiled = exec::compile(network, options);
  terminal.print(stage == "kernels" ? compiled.selection.selected.dump()
                                    : compiled.program.dump(compiled.selection.selected));
  return 0;
}

}  // namespace lantern::cli
