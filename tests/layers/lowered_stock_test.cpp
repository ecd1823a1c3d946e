// Every published cfg of the shared set lowers for inference and for training, or is refused for a
// reason that is known.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "layers/lower.hpp"
#include "support.hpp"

namespace lantern::layers {
namespace {

namespace fs = std::filesystem;
using testing::load_path;
using testing::Loaded;
using testing::shared_dir;

// Files that cannot be run, by what the message says.
const std::map<std::string, std::string> kRefused{
    {"darknet53_448_xnor.cfg", "binary and xnor convolutions"},
    {"tiny-yolo_xnor.cfg", "binary and xnor convolutions"},
    {"xyolo.test.cfg", "binary and xnor convolutions"},
    {"yolov3-tiny_xnor.cfg", "binary and xnor convolutions"},
};

// Words of yolo9000 as a hierarchy: one root group, ten children each.
std::string write_tree(int nodes) {
  const fs::path path = fs::temp_directory_path() / "lantern-9k.tree";
  std::ofstream file(path);
  for (int i = 0; i < nodes; ++i) file << "n" << i << ' ' << (i < 10 ? -1 : i / 10 - 1) << '\n';
  return path.string();
}

// yolo9000 names files that are not published beside it.
void give_class_files(Network& network) {
  for (Layer& layer : network.layers) {
    auto* region = std::get_if<RegionSpec>(&layer.spec);
    if (region == nullptr || region->tree.empty()) continue;
    region->tree = write_tree(region->classes);
    region->map.clear();
  }
}

std::string refusal(const Network& network, bool training) {
  try {
    lower(network, {.training = training,
                    .mini_batch = network.net.time_steps,  // one sequence
                    .forward_batch = training ? 0 : 1});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.message();
  }
  return {};
}

TEST(StockNetworks, AllOfTheSharedSetLowerOrAreRefusedForTheirKnownReason) {
  if (!fs::exists(shared_dir() / "cfg")) GTEST_SKIP() << "the shared reference set is absent";
  std::map<std::string, int> files;  // by folder below cfg/, "" for the stock files
  std::map<std::string, int> run;
  for (const auto& entry : fs::recursive_directory_iterator(shared_dir() / "cfg")) {
    if (entry.path().extension() != ".cfg") continue;
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(entry.path().string());
    Loaded loaded = load_path(entry.path());
    if (!loaded.ok()) continue;  // StockNetworks.EveryFile... knows these
    give_class_files(loaded.network);
    loaded.network.net.time_steps = std::min(loaded.network.net.time_steps, 3);
    std::string folder = fs::relative(entry.path().parent_path(), shared_dir() / "cfg").string();
    folder = folder.substr(0, folder.find('/'));
    ++files[folder];
    const auto known = kRefused.find(name);
    for (const bool training : {false, true}) {
      const std::string message = refusal(loaded.network, training);
      if (known == kRefused.end()) {
        EXPECT_EQ(message, "") << (training ? "training" : "inference");
      } else {
        EXPECT_NE(message, "");
        EXPECT_NE(message.find(known->second), std::string::npos) << message;
      }
    }
    if (known == kRefused.end()) ++run[folder];
  }
  EXPECT_EQ(files["."], 87);
  EXPECT_EQ(run["."], 84);  // docs/status.md says so
}

}  // namespace
}  // namespace lantern::layers
