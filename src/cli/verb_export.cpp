#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "data/lists.hpp"
#include "io/onnx_export.hpp"
#include "layers/network.hpp"

namespace lantern::cli {

namespace {

constexpr std::array kExportFlags{
    Flag{.name = "o",
         .kind = ValueKind::kText,
         .value = "FILE",
         .doc = "file to write (default: the cfg's name with .onnx, in the working directory)"},
    Flag{.name = "heads",
         .kind = ValueKind::kText,
         .value = "raw|decoded",
         .otherwise = "raw",
         .doc = "outputs of a detector: what feeds each detection layer, or boxes and scores"},
    Flag{.name = "batch",
         .kind = ValueKind::kInt,
         .value = "N",
         .otherwise = "1",
         .doc = "images of one run",
         .min = 1,
         .max = 1 << 16},
    Flag{.name = "fold_bn",
         .doc = "batch normalisation goes into the weights of the convolution before it"},
    Flag{.name = "names",
         .kind = ValueKind::kText,
         .value = "FILE",
         .doc = "class names, one a line, for the metadata"},
};

io::OnnxHeads heads_of(const std::string& word) {
  constexpr std::array<std::string_view, 2> kWords{"raw", "decoded"};
  if (word == kWords[0]) return io::OnnxHeads::kRaw;
  if (word == kWords[1]) return io::OnnxHeads::kDecoded;
  const auto near = nearest(word, kWords);
  throw Error(ErrorCode::kUsage, "", "-heads is '{}', want raw or decoded{}", word,
              near ? fmt::format("; did you mean {}?", *near) : "");
}

}  // namespace

std::span<const Flag> export_flags() { return kExportFlags; }

int run_export_onnx(const Arguments& arguments, Terminal& terminal) {
  const std::vector<std::string>& words = arguments.positionals;
  io::OnnxOptions options{.heads = heads_of(arguments.text("heads")),
                          .batch = arguments.integer("batch"),
                          .fold_batch_norm = arguments.has("fold_bn"),
                          .producer_version = LANTERN_VERSION};
  const layers::Network network =
      layers::load_network_file(words[0], {.batch = 1, .subdivisions = 1, .time_steps = 1});
  if (arguments.has("names")) options.names = data::read_names(arguments.text("names"));
  std::string target = arguments.text("o");
  if (target.empty()) target = std::filesystem::path(words[0]).stem().string() + ".onnx";
  check_writable(target);
  Diagnostics warnings;
  const std::string model = io::export_onnx(network, words[1], options, warnings);
  for (const Diagnostics::Entry& entry : warnings.entries()) terminal.warning(entry.to_string());
  write_file_atomically(target, model);
  terminal.notice(fmt::format("{}: {} layers, {}", target, network.layers.size(),
                              format_bytes(static_cast<Bytes>(model.size()))));
  return 0;
}

}  // namespace lantern::cli
