#include "io/denormalize.hpp"

#include <algorithm>
#include <vector>

#include "cfg/document.hpp"
#include "core/error.hpp"
#include "io/fold.hpp"
#include "io/model_weights.hpp"

namespace lantern::io {

namespace {

struct Value {
  int line = 0;  ///< from 1
  std::size_t column = 0;
  std::size_t length = 0;
};

// Where the cfg asks for batch norms. A key of [net] that is called so means nothing.
std::vector<Value> norm_keys(const std::string& path, std::string_view text) {
  Diagnostics told_when_loaded;
  const cfg::Document document = cfg::parse(path, text, told_when_loaded);
  std::vector<Value> values;
  for (std::size_t s = 1; s < document.sections.size(); ++s) {
    for (const cfg::Option& option : document.sections[s].options) {
      const std::string key = cfg::without_blanks(option.key);
      if (key != "batch_normalize" && key != "cbn") continue;
      values.push_back(
          {option.line, static_cast<std::size_t>(option.value_column - 1), option.value.size()});
    }
  }
  return values;
}

std::string without_norms(const std::string& path, std::string_view text) {
  const std::vector<Value> values = norm_keys(path, text);
  std::string result;
  auto next = values.begin();
  int line = 1;
  for (std::size_t start = 0; start < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', start), text.size() - 1) + 1;
    std::string whole(text.substr(start, end - start));
    if (next != values.end() && next->line == line) {
      whole.replace(next->column, next->length, "0");
      ++next;
    }
    result += whole;
    start = end;
  }
  return result;
}

layers::Network load(const std::string& path, std::string_view text) {
  Diagnostics diagnostics;
  layers::Network network = layers::load_network(path, text, diagnostics);
  diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  return network;
}

// The prefixes of the arrays that belong to a normalised part: "" of a layer without sub-layers.
std::vector<std::string> normalised_parts(const WeightsLayer& layer) {
  std::vector<std::string> parts;
  for (const WeightsArray& array : layer.arrays) {
    if (array.name.ends_with(kRollingMean))
      parts.push_back(array.name.substr(0, array.name.size() - kRollingMean.size()));
  }
  return parts;
}

bool stands_alone(const WeightsLayer& layer) { return layer.section == "batchnorm"; }

}  // namespace

Denormalized denormalize(const std::string& cfg_path, std::string_view cfg_text,
                         const std::filesystem::path& weights,
                         const std::filesystem::path& weights_out, Diagnostics& warnings) {
  const layers::Network normalised = load(cfg_path, cfg_text);
  Denormalized result{.cfg = without_norms(cfg_path, cfg_text)};
  const layers::Network plain = load(cfg_path, result.cfg);
  const WeightsLayout from = weights_layout(normalised), to = weights_layout(plain);
  for (const WeightsLayer& layer : from) {
    if (!layer.dontload) continue;
    throw Error(
        ErrorCode::kInvalidConfig, normalised.layers[static_cast<std::size_t>(layer.layer)].where,
        "error: [{}] has dontload=1, so its weights are in no file; remove the key", layer.section);
  }
  LANTERN_ASSERT(from.size() == to.size(), "the same layers have weights");
  WeightsValues values(to.size());
  const auto fold = [&](std::size_t i, std::vector<std::vector<float>>& arrays) {
    if (stands_alone(from[i])) {
      ++result.kept;
      values[i] = std::move(arrays);
      return;
    }
    for (const std::string& part : normalised_parts(from[i])) {
      fold_batch_norm(from[i], arrays, part);
      ++result.folded;
    }
    for (const WeightsArray& array : to[i].arrays) {
      const auto same = std::ranges::find(from[i].arrays, array.name, &WeightsArray::name);
      LANTERN_ASSERT(same != from[i].arrays.end(), "what is left was there before");
      values[i].push_back(std::move(
          arrays[static_cast<std::size_t>(std::ranges::distance(from[i].arrays.begin(), same))]));
    }
  };
  const Weights read = read_weights(weights, from, Purpose::kEvaluation, warnings, fold);
  write_weights(weights_out, read.header, to, views_of(values));
  return result;
}

}  // namespace lantern::io
