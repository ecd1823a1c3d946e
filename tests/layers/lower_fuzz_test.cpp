// Every section with wild values of its keys: what loads is trained and run, or refused by name; a
// plan with little memory gives the same bits as one that keeps everything, folded weights the same
// outputs as others. LANTERN_FUZZ_SEEDS=N tries N networks in place of a few.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "exec/model.hpp"

namespace lantern::layers {
namespace {

using Engine = std::mt19937;
constexpr int kSubdivisions = 2;

std::size_t below(Engine& engine, std::size_t n) {
  return std::uniform_int_distribution<std::size_t>(0, n - 1)(engine);
}

// What a section needs to be accepted more often than not.
std::string_view usual_keys(std::string_view section) {
  if (section == "convolutional") return "filters=16\nsize=3\npad=1\n";
  if (section == "crnn") return "output=16\nhidden=8\npad=1\n";
  if (section == "conv_lstm") return "output=16\npad=1\n";
  if (section == "crop") return "crop_width=5\ncrop_height=6\n";
  if (section == "contrastive") return "classes=3\n";
  return "";
}

std::string network_text(Engine& engine) {
  static const std::vector<cfg::SectionInfo> sections = section_reference();
  constexpr std::string_view kValues[] = {"0", "1",  "2",  "3",  "4",   "5",   "8", "16",
                                          "7", "-1", "-2", "-3", "0.5", "1.5", "1", "1"};
  const auto value = [&] { return kValues[below(engine, std::size(kValues))]; };
  std::string text = fmt::format(
      "[net]\nwidth={}\nheight={}\nchannels=3\nbatch={}\nsubdivisions={}\ntime_steps={}\n"
      "max_batches=10\nburn_in=1\nlearning_rate=0.001\nadam={}\n",
      6 + below(engine, 12), 6 + below(engine, 12), 2 * kSubdivisions, kSubdivisions,
      1 + below(engine, 4) / 3 * 2, below(engine, 4) / 3);
  for (std::size_t n = 1 + below(engine, 7); n > 0; --n) {
    const cfg::SectionInfo& section = sections[1 + below(engine, sections.size() - 1)];
    text += fmt::format("[{}]\n", section.name);
    for (const cfg::KeyInfo& key : section.keys) {
      if (key.name == "xnor" || key.name == "binary" || key.name == "tree" || key.name == "map")
        continue;
      if (key.required) {
        text += fmt::format("{}={}{}\n", key.name, value(),
                            below(engine, 2) == 0 ? std::string() : fmt::format(",{}", value()));
      } else if (below(engine, 6) == 0) {
        text +=
            fmt::format("{}={}\n", key.name,
                        key.words.empty() ? value() : key.words[below(engine, key.words.size())]);
      }
    }
    text += usual_keys(section.name);
    if (below(engine, 3) == 0) text += "[convolutional]\nfilters=16\nsize=1\nbatch_normalize=1\n";
  }
  switch (below(engine, 4)) {
    case 0:
      return text + "[cost]\n";
    case 1:
      return text + "[softmax]\n";
    case 2:
      return text +
             "[convolutional]\nfilters=14\nsize=1\nactivation=linear\n[yolo]\nclasses=2\nnum=2\n"
             "anchors=3,4, 7,6\nmax=4\n";
    default:
      return text;
  }
}

bool is_small(const Network& network) {
  constexpr std::int64_t kMost = 1 << 16;
  for (const Layer& layer : network.layers) {
    if (layer.out.elements() > kMost || layer.parameters > kMost || layer.in.elements() > kMost)
      return false;
  }
  return true;
}

// One random network.
class Subject {
 public:
  Subject(Network network, unsigned seed) : network_(std::move(network)), seed_(seed) {}

  exec::ModelOptions options(bool training) const {
    exec::ModelOptions options{.training = training,
                               .mini_batch = network_.minibatch(),
                               .forward_batch = training ? 0 : 2,
                               .threads = 2};
    options.plan.evaluations = 100;
    options.executor = [](const plan::Program&) {
      return exec::ExecutorOptions{.guard = true, .poison = true};
    };
    return options;
  }

  // Parameters and states after two iterations; NaN where the network makes some.
  std::vector<std::byte> trained(const exec::ModelOptions& options) const {
    exec::Model model(network_, options);
    model.initialise(7);
    const std::int64_t images = options.mini_batch;
    std::vector<float> pixels = floats(images * network_.input().elements(), 1);
    std::vector<float> truth(static_cast<std::size_t>(images * model.lowered().truth_floats));
    for (std::size_t i = 0; i < truth.size(); ++i) truth[i] = i % 6 < 4 ? 0.3F : 1.0F;
    ops::RunContext context{.seed = 3,
                            .learning_rate = 0.001F,
                            .momentum = 0.9F,
                            .decay = 0.0005F,
                            .batch = static_cast<float>(images * kSubdivisions),
                            .max_iterations = 10};
    for (context.iteration = 1; context.iteration <= 2; ++context.iteration) {
      for (context.subdivision = 0; context.subdivision < kSubdivisions; ++context.subdivision)
        model.run_mini_batch(pixels, truth, context);
      model.losses();
      model.update(context);
    }
    std::vector<std::byte> state;
    for (std::size_t i = 0; i < model.lowered().graph.tensors().size(); ++i) {
      const auto id = static_cast<graph::TensorId>(i);
      const graph::Role role = model.lowered().graph.tensor(id).role;
      if (role != graph::Role::kParameter && role != graph::Role::kState) continue;
      const auto bytes = model.executor().bytes(id);
      state.insert(state.end(), bytes.begin(), bytes.end());
    }
    return state;
  }

  std::vector<float> inferred(bool fuse) const {
    exec::ModelOptions with = options(false);
    with.fuse_layers = fuse;
    exec::Model model(network_, with);
    model.initialise(7);
    model.forward(floats(2 * network_.input().elements(), 2));
    return model.executor().read(*model.lowered().forward_outputs.back());
  }

 private:
  std::vector<float> floats(std::int64_t count, unsigned what) const {
    Rng rng(seed_, "data", what);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = rng.uniform();
    return values;
  }

  Network network_;
  unsigned seed_;
};

// Runs `body`; an Error must be one of the cfg, in one line.
template <typename Body>
bool runs(Body body) {
  try {
    body();
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig) << error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "no Error: " << error.what();
  }
  return false;
}

TEST(LowerFuzz, RandomSectionsRunOrAreRefused) {
  const char* wanted = std::getenv("LANTERN_FUZZ_SEEDS");
  const unsigned seeds = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 400;
  const char* from = std::getenv("LANTERN_FUZZ_FROM");
  int trained = 0, inferred = 0;
  for (unsigned seed = from != nullptr ? static_cast<unsigned>(std::atoi(from)) : 0; seed < seeds;
       ++seed) {
    Engine engine(seed);
    const std::string text = network_text(engine);
    Diagnostics diagnostics;
    Network network = load_network("net.cfg", text, diagnostics);
    if (diagnostics.has_errors() || !is_small(network)) continue;
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Subject subject(network, seed);
    inferred += runs([&] {
      const std::vector<float> fused = subject.inferred(true), plain = subject.inferred(false);
      ASSERT_EQ(fused.size(), plain.size());
      for (std::size_t i = 0; i < fused.size(); ++i) {
        if (!std::isfinite(plain[i])) continue;
        ASSERT_NEAR(fused[i], plain[i], 1e-3F * std::max(1.0F, std::abs(plain[i]))) << i;
      }
    });
    trained += runs([&] {
      exec::ModelOptions keep = subject.options(true);
      keep.plan.keep_everything = true;
      const std::vector<std::byte> expected = subject.trained(keep);
      exec::ModelOptions tight = subject.options(true);
      const exec::Compiled compiled = exec::select(network, tight);
      tight.plan.memory = plan::smallest_memory(compiled.selection.selected, tight.plan);
      EXPECT_TRUE(subject.trained(tight) == expected) << "other bits with little memory";
    });
    if (HasFailure()) return;
  }
  if (wanted == nullptr) {
    EXPECT_GT(trained, 30);
    EXPECT_GT(inferred, 40);
  }
}

}  // namespace
}  // namespace lantern::layers
