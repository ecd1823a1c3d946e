#pragma once

#include <fmt/format.h>

#include <cmath>

#include "cli/background.hpp"
#include "core/rng.hpp"
#include "data/image.hpp"

namespace lantern::cli {

inline constexpr const char* kSmall = R"([net]
batch=12
subdivisions=1
width=24
height=20
channels=3
learning_rate=0.05
max_batches={batches}
policy=constant
burn_in=10
min_crop=24
max_crop=30
{keys}
[convolutional]
batch_normalize=1
filters=8
size=3
stride=2
pad=1
activation=leaky

[convolutional]
batch_normalize=1
filters=16
size=3
stride=2
pad=1
activation=leaky

[avgpool]

[convolutional]
filters=3
size=1
stride=1
pad=1
activation=linear

[softmax]
)";

// Three kinds of stripes in pictures of different sizes: `lines`, `bars` and `plain`.
class Classifier : public ::testing::Test {
 protected:
  static constexpr const char* kLabels[3] = {"lines", "bars", "plain"};

  Classifier() {
    std::filesystem::create_directories(folder / "backup");
    for (const char* part : {"train", "valid"}) {
      std::filesystem::create_directories(folder / part);
      std::string list;
      for (int i = 0; i < 12; ++i) {
        const std::string name =
            fmt::format("{}/{}_{}.png", part, i, kLabels[static_cast<std::size_t>(i % 3)]);
        write_picture(name, i % 3, 30 + i, 26 + i / 2, part[0] == 't' ? i : 100 + i);
        list += name + "\n";
      }
      put(folder / (std::string(part) + ".list"), list);
    }
    put(folder / "labels.list", "lines\nbars\nplain\n");
    put(folder / "cls.data",
        "classes=3\ntrain=train.list\nvalid=valid.list\nlabels=labels.list\nbackup=backup\ntop="
        "2\n");
    write_cfg("net.cfg");
  }

  void write_picture(const std::string& name, int kind, int w, int h, int seed) const {
    Rng rng(static_cast<std::uint64_t>(seed), "picture");
    data::Image image{.w = w, .h = h, .c = 3, .pixels = {}};
    const auto dark = static_cast<std::uint8_t>(rng.uniform_int(0, 60));
    const auto light = static_cast<std::uint8_t>(rng.uniform_int(180, 255));
    const int width = static_cast<int>(rng.uniform_int(2, 3));
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        const int along = kind == 0 ? y : (kind == 1 ? x : 0);
        for (int c = 0; c < 3; ++c) image.pixels.push_back(along / width % 2 == 0 ? dark : light);
      }
    }
    const auto png = data::encode_png(image);
    put(folder / name, {reinterpret_cast<const char*>(png.data()), png.size()});
  }

  void write_cfg(const char* name, int batches = 120, const std::string& keys = {}) const {
    std::string text = kSmall;
    text.replace(text.find("{batches}"), 9, std::to_string(batches));
    text.replace(text.find("{keys}"), 6, keys);
    put(folder / name, text);
  }

  Outcome train(const std::string& flags = {}, const char* cfg = "net.cfg") const {
    return folder.run(
        fmt::format("classifier train cls.data {} -dont_show --threads 1 {}", cfg, flags));
  }
  std::string weights(const char* base = "net") const {
    return slurp(folder / fmt::format("backup/{}_final.weights", base));
  }

  WorkFolder folder;
};

}  // namespace lantern::cli
