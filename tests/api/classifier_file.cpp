#include "api/classifier_file.hpp"

#include <unistd.h>

#include <fstream>

#include "core/file.hpp"
#include "exec/model.hpp"
#include "io/model_weights.hpp"

namespace lantern::test {

namespace {
constexpr const char* kCfg = R"(
[net]
width=24
height=16
channels=3
[convolutional]
filters=8
size=3
stride=2
pad=1
batch_normalize=1
activation=leaky
[convolutional]
filters=5
size=1
activation=linear
[avgpool]
[softmax]
)";
}  // namespace

void write_classifier(const std::filesystem::path& folder) {
  const std::filesystem::path cfg = folder / "net.cfg";
  write_file_atomically(cfg, kCfg);
  exec::Model model(layers::load_network_file(cfg.string(), {.batch = 1, .subdivisions = 1}), {});
  model.initialise(7);
  for (std::size_t i = 0; i < model.lowered().parameters.size(); ++i) {
    if (model.lowered().parameters[i].array != "rolling_variance") continue;
    const std::vector<float> ones(model.view_parameter(i).size(), 1.0F);
    model.set_parameter(i, ones);
  }
  io::save_weights(model, folder / "net.weights", {});
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "lantern_api_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

}  // namespace lantern::test
