#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/file.hpp"
#include "layers/network.hpp"

namespace lantern::layers::testing {

struct Loaded {
  Network network;
  Diagnostics diagnostics;
  bool ok() const { return !diagnostics.has_errors(); }
  std::string messages() const {
    std::string out;
    for (const auto& entry : diagnostics.entries()) out += entry.to_string() + "\n";
    return out;
  }
};

inline Loaded load(std::string_view text, const Overrides& overrides = {}) {
  Loaded loaded;
  loaded.network = load_network("net.cfg", text, loaded.diagnostics, overrides);
  return loaded;
}

inline Loaded load_path(const std::filesystem::path& path) {
  Loaded loaded;
  loaded.network = load_network(path.filename().string(), read_file(path), loaded.diagnostics);
  return loaded;
}

inline std::filesystem::path data_dir() { return std::filesystem::path(LANTERN_TEST_DATA) / "cfg"; }
/// The shared reference set beside the repository; it may be absent.
inline std::filesystem::path shared_dir() {
  return std::filesystem::path(LANTERN_SOURCE_DIR) / ".." / "shared";
}

/// A 3-channel input of w x h, then `layers`.
inline std::string net(int w, int h, std::string_view layers) {
  return fmt::format("[net]\nwidth={}\nheight={}\nchannels=3\n{}", w, h, layers);
}

}  // namespace lantern::layers::testing
