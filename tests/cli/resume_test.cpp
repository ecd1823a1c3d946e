// A training that is killed and resumed computes the bits of one that was not.
#include <map>
#include <sstream>

#include "cli/background.hpp"
#include "core/rng.hpp"
#include "io/training_state.hpp"

namespace lantern::cli {
namespace {

using std::chrono::milliseconds;

std::string with(std::string cfg, const std::string& key, const std::string& value) {
  const std::size_t at = cfg.find("\n" + key + "=");
  if (at == std::string::npos) return "[net]\n" + key + "=" + value + cfg.substr(cfg.find('\n'));
  const std::size_t end = cfg.find('\n', at + 1);
  return cfg.replace(at + 1, end - at - 1, key + "=" + value);
}

void save_every(int iterations, const WorkFolder& folder) {
  put(folder / "obj.data", slurp(folder / "obj.data") + "savelast=" + std::to_string(iterations) +
                               "\nsaveweights=100000\n");
}

/// Trains, and kills the run some time after its first iteration; false when it came to its end
/// before.
bool train_and_kill(const WorkFolder& folder, const std::vector<std::string>& flags,
                    milliseconds wait) {
  std::vector<std::string> args{"detector", "train", "obj.data", "net.cfg"};
  args.insert(args.end(), flags.begin(), flags.end());
  Background run(folder, args);
  run.wait_for("avg loss");
  std::this_thread::sleep_for(wait);
  if (!run.has_ended()) {
    run.end_with(SIGKILL);
    return true;
  }
  EXPECT_EQ(run.end_with(SIGKILL), 0) << run.output();
  return false;
}

struct Variant {
  std::string name;
  std::vector<std::pair<std::string, std::string>> keys;
  int save_every;
  int kills;
  int longest_wait_ms;
};

class Resume : public ::testing::TestWithParam<Variant> {};

TEST_P(Resume, GivesTheBitsOfAnUnbrokenRun) {
  const Variant& variant = GetParam();
  const WorkFolder whole("39-no-display");
  const WorkFolder broken("39-no-display");
  std::string cfg = slurp(whole / "net.cfg");
  for (const auto& [key, value] : variant.keys) cfg = with(cfg, key, value);
  for (const WorkFolder* folder : {&whole, &broken}) {
    put(*folder / "net.cfg", cfg);
    save_every(variant.save_every, *folder);
  }
  const Outcome unbroken = whole.run("detector train obj.data net.cfg -threads 2 -map");
  ASSERT_EQ(unbroken.code, 0) << unbroken.err;

  Rng rng(20261201, "kill");
  int kills = 0;
  while (kills < variant.kills) {
    std::vector<std::string> flags{"-threads", "2", "-map", "-loader_threads",
                                   std::to_string(1 << (kills % 3))};
    if (broken.has("backup/net_last.state")) flags.emplace_back("-resume");
    const auto wait = milliseconds(rng.uniform_int(0, variant.longest_wait_ms));
    if (!train_and_kill(broken, flags, wait)) break;
    ++kills;
  }
  EXPECT_EQ(kills, variant.kills) << "the run was over too soon to be killed so often";
  const Outcome rest = broken.run("detector train obj.data net.cfg -threads 2 -map -resume");
  ASSERT_EQ(rest.code, 0) << rest.err;
  for (const std::string file : {"net_final.weights", "net_final.state", "net_best.weights"}) {
    EXPECT_FALSE(slurp(whole / ("backup/" + file)).empty()) << file;
    EXPECT_TRUE(slurp(whole / ("backup/" + file)) == slurp(broken / ("backup/" + file))) << file;
  }
  const bool averages = variant.name == "averages";
  EXPECT_EQ(whole.has("backup/net_ema.weights"), averages);
  if (averages) {
    const std::string average = slurp(broken / "backup/net_ema.weights");
    EXPECT_TRUE(average == slurp(whole / "backup/net_ema.weights"));
    EXPECT_FALSE(average == slurp(broken / "backup/net_last.weights")) << "it is an average";
  }
  // Every iteration stands in the log once, with the same loss.
  const auto losses = [](const WorkFolder& folder) {
    std::map<int, std::string> found;
    std::istringstream log(slurp(folder / "backup/net_metrics.jsonl"));
    for (std::string line; std::getline(log, line);) {
      const nlohmann::json json = parse_json(line);
      if (!json.contains("loss")) continue;
      EXPECT_TRUE(found.emplace(json["iteration"], json["loss"].dump()).second) << line;
    }
    return found;
  };
  EXPECT_EQ(losses(whole), losses(broken));
}

INSTANTIATE_TEST_SUITE_P(
    Optimisers, Resume,
    ::testing::Values(
        Variant{"sgd", {{"max_batches", "300"}, {"random", "1"}}, 1, 20, 40},
        Variant{"adam", {{"adam", "1"}, {"max_batches", "100"}}, 1, 5, 60},
        Variant{"averages", {{"ema_alpha", "0.9"}, {"max_batches", "2040"}}, 20, 4, 1500}),
    [](const auto& variant) { return variant.param.name; });

class ResumeOf : public ::testing::Test {
 protected:
  void SetUp() override {
    save_every(1, folder);
    ASSERT_EQ(folder.run("detector train obj.data net.cfg").code, 0);
    put(folder / "net.cfg", with(slurp(folder / "net.cfg"), "max_batches", "12"));
    std::filesystem::remove(folder / "backup/net_final.state");
  }
  const WorkFolder folder{"39-no-display"};
};

TEST_F(ResumeOf, GoesOnFromWhatIsNamed) {
  for (const std::string flags :
       {"-resume", "-resume=backup/net_last.state", "-resume=backup/net_last.weights",
        "backup/net_last.weights --resume"}) {
    const Outcome outcome = folder.run("detector train obj.data net.cfg " + flags);
    EXPECT_EQ(outcome.code, 0) << flags << ": " << outcome.err;
    EXPECT_TRUE(outcome.says("resuming from") && outcome.says("net.cfg has changed")) << flags;
    // Back to where it was for the next one.
    for (const char* file : {"net_final.state", "net_last.state"})
      std::filesystem::remove(folder / ("backup/" + std::string(file)));
    put(folder / "net.cfg", with(slurp(folder / "net.cfg"), "max_batches", "10"));
    ASSERT_EQ(folder.run("detector train obj.data net.cfg").code, 0);
    std::filesystem::remove(folder / "backup/net_final.state");
    put(folder / "net.cfg", with(slurp(folder / "net.cfg"), "max_batches", "12"));
  }
}

// What a state says has been reached is not written over by less.
TEST_F(ResumeOf, KeepsTheBest) {
  const std::filesystem::path path = folder / "backup/net_last.state";
  io::TrainingState state = io::read_state(path);
  std::vector<std::vector<float>> values(state.arrays.size());
  io::read_state_values(path, state, [&](std::size_t i, std::span<const float> array) {
    values[i].assign(array.begin(), array.end());
  });
  state.best = 2;  // nothing reaches that
  io::write_state(path, state, [&](std::size_t i) { return std::span<const float>(values[i]); });
  const Outcome outcome = folder.run("detector train obj.data net.cfg -map -resume");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.prints("Last accuracy mAP")) << outcome.out;
  EXPECT_FALSE(folder.has("backup/net_best.weights"));
}

TEST_F(ResumeOf, RefusesWhatItCannotGoOnFrom) {
  const auto refused = [&](const std::string& flags, int code, const std::string& why) {
    const Outcome outcome = folder.run("detector train obj.data net.cfg " + flags);
    EXPECT_EQ(outcome.code, code) << flags << ": " << outcome.err;
    EXPECT_TRUE(outcome.says(why)) << flags << ": " << outcome.err;
  };
  refused("-resume -clear", 2, "give one of them");
  refused("-resume -seed 5", 2, "leave -seed 5 out");
  refused("-resume=nothing.state", 3, "cannot be opened");
  refused("-resume=net.cfg", 3, "is no state file");
  const std::string cfg = slurp(folder / "net.cfg");
  put(folder / "net.cfg", with(cfg, "batch", "8"));
  refused("-resume", 3, "was written with batch=4");
  put(folder / "net.cfg", with(cfg, "max_batches", "10"));
  refused("-resume", 3, "which is the end (max_batches=10)");
  put(folder / "net.cfg", with(cfg, "filters", "12"));
  refused("-resume", 3, "is the state of another network");
  put(folder / "net.cfg", with(cfg, "adam", "1"));
  refused("-resume", 3, "is the state of another network or optimiser");
  put(folder / "net.cfg", cfg);
  const std::string whole = slurp(folder / "backup/net_last.state");
  put(folder / "backup/net_last.state", whole.substr(0, whole.size() - 100));
  refused("-resume=backup/net_last.state", 3, "cut short or damaged");
  refused("-resume", 3, "is passed over");
  // An older one that is whole is taken instead.
  put(folder / "backup/net_9.state", whole);
  put(folder / "backup/net_last.state", whole.substr(0, whole.size() - 8) + "damaged!");
  const Outcome older = folder.run("detector train obj.data net.cfg -resume");
  EXPECT_EQ(older.code, 0) << older.err;
  EXPECT_TRUE(older.says("net_last.state is damaged") || older.says("net_last.state: is damaged"))
      << older.err;
  EXPECT_TRUE(older.says("resuming from backup/net_9.state")) << older.err;
  for (const char* file : {"net_9.state", "net_final.state"})
    std::filesystem::remove(folder / ("backup/" + std::string(file)));
  std::filesystem::remove(folder / "backup/net_last.state");
  refused("-resume", 3, "holds no state file net_*.state");
}

// A rate of a million is too much from the first iterations on, one of a thousandth is not: a run
// that saved good states before its rate grew goes back to them.
TEST(OnNan, RollbackGoesBackAndHalvesTheRate) {
  const WorkFolder folder("39-no-display");
  save_every(1, folder);
  std::string cfg = with(slurp(folder / "net.cfg"), "steps", "5,8");
  cfg = with(with(cfg, "scales", "1e13,1"), "max_batches", "12");
  put(folder / "net.cfg", cfg);
  const Outcome stopped = folder.run("detector train obj.data net.cfg");
  ASSERT_EQ(stopped.code, 1) << stopped.err;
  ASSERT_TRUE(stopped.says("not finite")) << stopped.err;
  const Outcome outcome = folder.run("detector train obj.data net.cfg -clear -on_nan rollback");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(outcome.says("with 0.5 of the learning rate")) << outcome.err;
  EXPECT_TRUE(outcome.says("with 0.03125 of the learning rate")) << outcome.err;
  EXPECT_TRUE(outcome.says("go on from")) << outcome.err;
  EXPECT_TRUE(folder.has("backup/net_last.state"));
}

}  // namespace
}  // namespace lantern::cli
