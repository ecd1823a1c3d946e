#include "exec/block_nets.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>
#include <vector>

namespace lantern::test {

namespace {

struct Conv {
  int filters = 16, size = 1, stride = 1, groups = 1;
  std::string_view activation = "mish";
  int batch_normalize = 1;
};

// A cfg, section by section. What adds a section gives back its index.
class Cfg {
 public:
  explicit Cfg(int batch_normalize = 1, int subdivisions = 1) : batch_normalize_(batch_normalize) {
    text_ = fmt::format(
        "[net]\nbatch=8\nsubdivisions={}\nwidth=64\nheight=64\nchannels=3\nlearning_rate=0.01\n"
        "max_batches=100\n",
        subdivisions);
  }

  int add(std::string_view section) {
    text_ += fmt::format("\n{}\n", section);
    return layers_++;
  }
  int conv(const Conv& c) {
    return add(fmt::format(
        "[convolutional]\nbatch_normalize={}\nfilters={}\nsize={}\nstride={}\npad=1\ngroups={}\n"
        "activation={}",
        c.batch_normalize == 1 ? batch_normalize_ : c.batch_normalize, c.filters, c.size, c.stride,
        c.groups, c.activation));
  }
  int route(std::initializer_list<int> layers) {
    return add(fmt::format("[route]\nlayers={}", fmt::join(layers, ",")));
  }
  int group(int layer, int groups, int id) {
    return add(fmt::format("[route]\nlayers={}\ngroups={}\ngroup_id={}", layer, groups, id));
  }
  int shortcut(int from, std::string_view activation = "linear") {
    return add(fmt::format("[shortcut]\nfrom={}\nactivation={}", from, activation));
  }
  int maxpool() { return add("[maxpool]\nsize=2\nstride=2"); }

  std::string classifier() {
    add("[avgpool]");
    conv({.filters = 10, .activation = "linear", .batch_normalize = 0});
    add("[softmax]");
    return text_;
  }

 private:
  std::string text_;
  int layers_ = 0;
  int batch_normalize_ = 1;
};

// 1x1, grouped 3x3, linear 1x1, sum.
int grouped_bottleneck(Cfg& cfg, int input, int filters, int groups) {
  cfg.conv({.filters = filters, .activation = "leaky"});
  cfg.conv({.filters = filters, .size = 3, .groups = groups, .activation = "leaky"});
  cfg.conv({.filters = filters, .activation = "linear"});
  return cfg.shortcut(input, "leaky");
}

// Both halves of a split, `blocks` residual blocks on the second, joined.
int split_stage(Cfg& cfg, int filters, int blocks) {
  const int half = filters / 2;
  const int down = cfg.conv({.filters = filters, .size = 3, .stride = 2});
  const int passed = cfg.conv({.filters = half});
  cfg.route({down});
  int at = cfg.conv({.filters = half});
  for (int b = 0; b < blocks; ++b) {
    cfg.conv({.filters = half});
    cfg.conv({.filters = half, .size = 3});
    at = cfg.shortcut(at);
  }
  const int worked = cfg.conv({.filters = half});
  cfg.route({worked, passed});
  return cfg.conv({.filters = filters});
}

// Kernels of 3, 5, 7, ... on as many groups of channels of the last layer, joined.
int mixed_kernels(Cfg& cfg, int input, int channels, int kernels, int stride) {
  std::vector<int> parts;
  for (int k = 0; k < kernels; ++k) {
    cfg.group(input, kernels, k);
    const int filters = channels / kernels;
    parts.push_back(cfg.conv({.filters = filters,
                              .size = 3 + 2 * k,
                              .stride = stride,
                              .groups = k % 2 == 0 ? filters : filters / 4,
                              .activation = "swish"}));
  }
  return cfg.add(fmt::format("[route]\nlayers={}", fmt::join(parts, ",")));
}

int squeeze_and_excite(Cfg& cfg, int map, int channels) {
  cfg.add("[avgpool]");
  cfg.conv({.filters = channels / 4, .activation = "swish"});
  cfg.conv({.filters = channels, .activation = "logistic"});
  return cfg.add(fmt::format("[scale_channels]\nfrom={}\nactivation=linear", map));
}

// A parent of level `from` (2: the largest) brought to a level with `filters` channels.
int resampled(Cfg& cfg, int parent, int from, int to, int filters) {
  cfg.route({parent});
  if (from < to) {
    cfg.conv({.filters = 8});
    cfg.conv({.filters = 8, .size = 3, .stride = 2});
    if (to - from == 2) cfg.maxpool();
  } else if (from > to) {
    cfg.conv({.filters = 8});
    cfg.add(fmt::format("[upsample]\nstride={}", 1 << (from - to)));
  }
  return cfg.conv({.filters = filters, .activation = "linear"});
}

int bottleneck(Cfg& cfg, int input, int inner) {
  cfg.conv({.filters = inner});
  cfg.conv({.filters = inner, .size = 3});
  cfg.conv({.filters = 4 * inner, .activation = "linear"});
  return cfg.shortcut(input, "mish");
}

int weighted_sum(Cfg& cfg, std::initializer_list<int> from, std::string_view type,
                 std::string_view normalization) {
  return cfg.add(fmt::format(
      "[shortcut]\nfrom={}\nweights_type={}\nweights_normalization={}\nactivation=linear",
      fmt::join(from, ","), type, normalization));
}

std::string split_residuals(Cfg cfg) {
  cfg.conv({.filters = 16, .size = 3});
  split_stage(cfg, 32, 1);
  split_stage(cfg, 48, 2);
  split_stage(cfg, 64, 1);
  return cfg.classifier();
}

}  // namespace

std::string grouped_bottlenecks_cfg() {
  Cfg cfg;
  cfg.conv({.filters = 16, .size = 7, .stride = 2, .activation = "leaky"});
  const int stem = cfg.maxpool();
  const int passed = cfg.conv({.filters = 32, .activation = "leaky"});
  cfg.route({stem});
  int at = cfg.conv({.filters = 32, .activation = "leaky"});
  for (int b = 0; b < 2; ++b) at = grouped_bottleneck(cfg, at, 32, 8);
  const int worked = cfg.conv({.filters = 32, .activation = "leaky"});
  cfg.route({worked, passed});
  cfg.conv({.filters = 64, .activation = "leaky"});
  at = cfg.conv({.filters = 64, .size = 3, .stride = 2, .groups = 8, .activation = "leaky"});
  grouped_bottleneck(cfg, at, 64, 16);
  return cfg.classifier();
}

std::string mixed_kernels_cfg() {
  Cfg cfg;
  const int stem = cfg.conv({.filters = 24, .size = 3, .stride = 2, .activation = "relu"});
  cfg.conv({.filters = 24, .activation = "relu"});
  cfg.conv({.filters = 24, .size = 3, .groups = 6, .activation = "relu"});
  cfg.conv({.filters = 24, .activation = "linear"});
  cfg.shortcut(stem);
  int wide = cfg.conv({.filters = 48, .groups = 2, .activation = "relu"});
  mixed_kernels(cfg, wide, 48, 3, 2);
  const int narrow = cfg.conv({.filters = 32, .groups = 2, .activation = "linear"});
  wide = cfg.conv({.filters = 64, .activation = "swish"});
  const int mixed = mixed_kernels(cfg, wide, 64, 4, 1);
  squeeze_and_excite(cfg, mixed, 64);
  cfg.conv({.filters = 32, .groups = 2, .activation = "linear"});
  cfg.shortcut(narrow);
  cfg.add("[dropout]\nprobability=.25");
  return cfg.classifier();
}

std::string permuted_scales_cfg() {
  Cfg cfg;
  cfg.conv({.filters = 16, .size = 7, .stride = 2});
  const int stem = cfg.maxpool();
  const int first = bottleneck(cfg, stem, 4);    // level 2, 16 channels
  const int second = bottleneck(cfg, first, 4);  // level 2
  const auto block = [&](int a, int level_a, int b, int level_b, int level, int inner) {
    const int left = resampled(cfg, a, level_a, level, 4 * inner);
    resampled(cfg, b, level_b, level, 4 * inner);
    return bottleneck(cfg, cfg.shortcut(left, "mish"), inner);
  };
  const int third = block(first, 2, second, 2, 2, 4);
  const int fourth = block(first, 2, second, 2, 4, 8);
  const int fifth = block(third, 2, fourth, 4, 3, 8);
  const int sixth = block(third, 2, fifth, 3, 4, 8);
  block(fifth, 3, sixth, 4, 3, 6);
  return cfg.classifier();
}

std::string split_residuals_cfg() { return split_residuals(Cfg()); }

std::string cross_iteration_norms_cfg() { return split_residuals(Cfg(2, 2)); }

std::string dropped_blocks_cfg() {
  Cfg cfg;
  const int stem = cfg.conv({.filters = 24, .size = 3, .stride = 2});
  cfg.conv({.filters = 24, .size = 3});
  cfg.add("[dropout]\ndropblock=1\ndropblock_size_abs=7\nprobability=0.1");
  cfg.shortcut(stem);
  cfg.conv({.filters = 32, .size = 3, .stride = 2});
  const int dropped = cfg.add("[dropout]\ndropblock=1\ndropblock_size_rel=0.6\nprobability=0.1");
  cfg.conv({.filters = 32, .size = 3});
  cfg.route({cfg.conv({.filters = 16}), dropped});
  cfg.conv({.filters = 32, .activation = "leaky"});
  return cfg.classifier();
}

std::string weighted_sums_cfg() {
  Cfg cfg;
  const int first = cfg.conv({.filters = 24, .size = 3, .stride = 2});
  const int second = cfg.conv({.filters = 24, .size = 3});
  cfg.conv({.filters = 24, .size = 3});
  const int sum = weighted_sum(cfg, {first}, "per_feature", "relu");
  cfg.conv({.filters = 24, .size = 3, .groups = 2});
  weighted_sum(cfg, {sum, second}, "per_channel", "softmax");
  cfg.conv({.filters = 32, .size = 3, .stride = 2});
  const int last = cfg.conv({.filters = 32, .activation = "leaky"});
  cfg.conv({.filters = 32, .size = 3});
  weighted_sum(cfg, {last}, "per_channel", "relu");
  return cfg.classifier();
}

}  // namespace lantern::test
