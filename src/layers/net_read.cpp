// Reads [net] by its key table (net.cpp) and checks what one key alone cannot tell.

#include <algorithm>
#include <set>

#include "core/text.hpp"
#include "layers/net.hpp"

namespace lantern::layers {
namespace {

// The multiple of `step` nearest to value, and the next one on the other side.
std::set<int> neighbours(int value, int step) {
  std::set<int> out;
  const int below = value / step * step;
  if (below >= step) out.insert(below);
  out.insert(below + step);
  return out;
}

void check_batch(const NetSpec& net, cfg::SectionReader& reader) {
  if (net.batch % net.subdivisions == 0) return;
  std::string pairs;
  for (const int batch : neighbours(net.batch, net.subdivisions)) {
    pairs += fmt::format("{}{}/{}", pairs.empty() ? "" : ", ", batch, net.subdivisions);
  }
  for (int above = net.subdivisions + 1; above <= net.batch; ++above) {
    if (net.batch % above != 0) continue;
    pairs += fmt::format(", {}/{}", net.batch, above);
    break;
  }
  for (int below = net.subdivisions - 1; below >= 1; --below) {
    if (net.batch % below != 0) continue;
    pairs += fmt::format(", {}/{}", net.batch, below);
    break;
  }
  reader.diagnostics().error(reader.where("batch"),
                             "[net] batch={} is not a multiple of subdivisions={} ({}); nearest "
                             "batch/subdivisions that work: {}",
                             net.batch, net.subdivisions, reader.where("subdivisions"), pairs);
}

void check_policy(const NetSpec& net, cfg::SectionReader& reader) {
  Diagnostics& diagnostics = reader.diagnostics();
  const bool stepped =
      net.policy == Policy::kSteps || (net.policy == Policy::kSgdr && !net.steps.empty());
  if (net.policy == Policy::kSteps) {
    for (const char* key : {"steps", "scales"}) {
      if (!reader.has(key)) {
        diagnostics.error(reader.where("policy"), "[net] policy=steps needs {}=", key);
      }
    }
  }
  const auto check_length = [&](const char* key, std::size_t size) {
    if (!stepped || !reader.has("steps") || !reader.has(key) || size == net.steps.size()) return;
    if (size < net.steps.size()) {
      diagnostics.error(reader.where(key),
                        "[net] {} has {} values, steps has {} ({}); give one per step", key, size,
                        net.steps.size(), reader.where("steps"));
    } else {
      diagnostics.warning(reader.where(key),
                          "[net] {} has {} values, steps has {}; the rest is ignored", key, size,
                          net.steps.size());
    }
  };
  check_length("scales", net.scales.size());
  check_length("seq_scales", net.seq_scales.size());
  if (net.policy == Policy::kStep && net.step < 1) {
    diagnostics.error(reader.where("step"), "[net] step is {}, policy=step wants >= 1", net.step);
  }
  if ((net.policy == Policy::kPoly || net.policy == Policy::kCosine) && net.max_batches < 1) {
    diagnostics.error(reader.where("policy"), "[net] policy={} needs max_batches >= 1",
                      net.policy == Policy::kPoly ? "poly" : "cosine");
  }
  if (net.policy == Policy::kSgdr && net.sgdr_cycle < 1) {
    diagnostics.error(reader.where("policy"),
                      "[net] policy=sgdr needs sgdr_cycle or max_batches >= 1");
  }
}

void check_sizes(const NetSpec& net, cfg::SectionReader& reader) {
  Diagnostics& diagnostics = reader.diagnostics();
  const bool image = net.width > 0 && net.height > 0 && net.channels > 0;
  if (image || (net.inputs > 0 && reader.has("inputs"))) return;
  diagnostics.error(
      reader.where(),
      "[net] width={}, height={}, channels={}: give all three, or inputs= for a network "
      "without images",
      net.width, net.height, net.channels);
}

void check_memory(const NetSpec& net, cfg::SectionReader& reader) {
  const auto is_size = [](std::string_view text) {
    return text == "auto" || parse_bytes(text).has_value();
  };
  const auto is_share = [](std::string_view text) {
    if (!text.ends_with('%')) return false;
    text.remove_suffix(1);
    const auto value = parse_float(text);
    return value && *value > 0 && *value <= 100;
  };
  Diagnostics& diagnostics = reader.diagnostics();
  if (!is_size(net.memory) && !is_share(net.memory)) {
    diagnostics.error(reader.where("memory"),
                      "[net] memory is '{}', want auto, a size such as 6G or a share such as 75%",
                      net.memory);
  }
  if (!is_size(net.host_memory)) {
    diagnostics.error(reader.where("host_memory"),
                      "[net] host_memory is '{}', want auto or a size such as 24G",
                      net.host_memory);
  }
  if (net.disk_memory.empty()) return;
  const std::size_t colon = net.disk_memory.rfind(':');
  if (colon == std::string::npos || colon == 0 ||
      !parse_bytes(std::string_view(net.disk_memory).substr(colon + 1))) {
    diagnostics.error(reader.where("disk_memory"),
                      "[net] disk_memory is '{}', want FOLDER:SIZE such as /scratch:100G",
                      net.disk_memory);
  }
}

}  // namespace

NetSpec read_net(cfg::SectionReader& reader, const Overrides& overrides) {
  NetSpec net;
  reader.read<NetSpec>(net, kNetKeys);
  if (overrides.batch) net.batch = std::max(1, *overrides.batch);
  if (overrides.subdivisions) net.subdivisions = std::max(1, *overrides.subdivisions);
  if (overrides.time_steps) net.time_steps = *overrides.time_steps;
  if (overrides.width) net.width = *overrides.width;
  if (overrides.height) net.height = *overrides.height;
  // Defaults that follow the size must follow the new one.
  if (!reader.has("max_crop")) net.max_crop = 2 * net.width;
  if (!reader.has("min_crop")) net.min_crop = net.width;
  net.time_steps = std::max(1, net.time_steps);
  net.sequential_subdivisions = std::min(net.sequential_subdivisions, net.subdivisions);
  check_batch(net, reader);
  check_sizes(net, reader);
  check_policy(net, reader);
  check_memory(net, reader);
  if (reader.has("host_memory")) net.host_memory_where = reader.where("host_memory");
  if (reader.has("mini_batch")) net.mini_batch_where = reader.where("mini_batch");
  if (net.contrastive != 0 && net.batch / net.subdivisions == 1 && !overrides.batch) {
    reader.diagnostics().error(
        reader.where("contrastive"),
        "[net] contrastive=1 needs a mini-batch (batch / subdivisions) of 2 or more, it is 1");
  }
  return net;
}

}  // namespace lantern::layers
