#include "train/learning_rate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <numbers>
#include <set>
#include <sstream>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "golden_folder.hpp"
#include "layers/net.hpp"
#include "train/schedule.hpp"

namespace lantern::train {
namespace {

const std::filesystem::path kGolden = test::golden_folder() / "lr";

Policy parse_policy(std::string_view name) {
  const auto words = layers::policy_words();
  return static_cast<Policy>(std::ranges::find(words, name, &cfg::Word::text)->value);
}

/// The keys of [net] in a golden cfg; reals rounded to float, as the reference holds them.
Schedule read_schedule(const std::filesystem::path& path) {
  std::map<std::string, std::string> keys;
  std::istringstream cfg(read_file(path));
  for (std::string line; std::getline(cfg, line);) {
    if (line.starts_with("[") && line != "[net]") break;
    if (const auto at = line.find('='); at != std::string::npos) {
      keys[std::string(trim(line.substr(0, at)))] = trim(line.substr(at + 1));
    }
  }
  Schedule s;
  const auto real = [&](const char* key, double& value) {
    if (keys.contains(key)) value = static_cast<float>(parse_float(keys[key]).value());
  };
  const auto whole = [&](const char* key, std::int64_t& value) {
    if (keys.contains(key)) value = parse_int(keys[key]).value();
  };
  s.policy = parse_policy(keys.at("policy"));
  real("learning_rate", s.learning_rate);
  real("learning_rate_min", s.learning_rate_min);
  real("power", s.power);
  real("gamma", s.gamma);
  real("scale", s.scale);
  whole("step", s.step);
  whole("burn_in", s.burn_in);
  whole("max_batches", s.max_batches);
  whole("sgdr_cycle", s.sgdr_cycle);
  whole("sgdr_mult", s.sgdr_mult);
  if (keys.contains("steps")) {
    for (const auto v : split(keys["steps"], ',')) s.steps.push_back(parse_int(trim(v)).value());
    for (const auto v : split(keys["scales"], ','))
      s.scales.push_back(parse_float(trim(v)).value());
  }
  check(s, path.filename().string());
  return s;
}

/// {"policy": {"cfg": "x.cfg", "iteration_lr": [[b, rate], ...]}, ...}: cfg names and numbers, in
/// order.
struct Golden {
  std::string cfg;
  std::vector<std::pair<std::int64_t, double>> rates;
};

std::vector<Golden> read_golden() {
  const std::string json = read_file(kGolden / "lr.json");
  std::vector<Golden> all;
  std::vector<double> numbers;
  for (std::size_t i = 0; i < json.size();) {
    if (json[i] == '"') {
      const std::size_t end = json.find('"', i + 1);
      const std::string word = json.substr(i + 1, end - i - 1);
      if (word.ends_with(".cfg")) all.push_back({word, {}});
      i = end + 1;
    } else if (json[i] == '-' || std::isdigit(static_cast<unsigned char>(json[i])) != 0) {
      const std::size_t end = json.find_first_not_of("+-.eE0123456789", i);
      numbers.push_back(parse_float(json.substr(i, end - i)).value());
      if (numbers.size() == 2) {
        all.back().rates.emplace_back(static_cast<std::int64_t>(numbers[0]), numbers[1]);
        numbers.clear();
      }
      i = end;
    } else {
      ++i;
    }
  }
  return all;
}

TEST(LearningRate, MatchesTheGoldenRatesOfEveryPolicy) {
  const std::vector<Golden> all = read_golden();
  EXPECT_EQ(all.size(), 13U);
  for (const Golden& golden : all) {
    SCOPED_TRACE(golden.cfg);
    const Schedule schedule = read_schedule(kGolden / golden.cfg);
    EXPECT_GE(golden.rates.size(), 30U);
    for (const auto& [b, rate] : golden.rates) {
      // The reference computes in float; near the end of poly that costs digits of a tiny rate.
      EXPECT_NEAR(learning_rate(schedule, b), rate, 2e-6 * rate + 1e-13) << "batch " << b;
    }
  }
}

TEST(LearningRate, BurnInComesBeforeEveryPolicyAndStepsStopAtTheFirstLaterOne) {
  Schedule s;
  s.policy = Policy::kSteps;
  s.learning_rate = 1;
  s.power = 2;
  s.burn_in = 10;
  s.steps = {5, 20, 30};
  s.scales = {0.5, 0.1, 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(s, 5), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(s, 10), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(s, 19), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(s, 20), 0.05);
  EXPECT_DOUBLE_EQ(learning_rate(s, -3), 0);
}

TEST(LearningRate, CosineIsOneCycleAndStaysAtTheMinimum) {
  Schedule s;
  s.policy = parse_policy("cosine");
  s.learning_rate = 0.01;
  s.learning_rate_min = 0.001;
  s.max_batches = 1000;
  EXPECT_DOUBLE_EQ(learning_rate(s, 0), 0.01);
  EXPECT_NEAR(learning_rate(s, 500), 0.0055, 1e-12);
  EXPECT_NEAR(learning_rate(s, 1000), 0.001, 1e-12);
  EXPECT_NEAR(learning_rate(s, 1300), 0.001, 1e-12);
}

TEST(LearningRate, SgdrRestartsAfterEachCycle) {
  Schedule s;
  s.policy = Policy::kSgdr;
  s.learning_rate = 1;
  s.learning_rate_min = 0;
  s.sgdr_cycle = 10;
  const auto phase = [](double f) { return 0.5 * (1 + std::cos(std::numbers::pi * f)); };
  EXPECT_NEAR(learning_rate(s, 10), 0, 1e-12);
  EXPECT_NEAR(learning_rate(s, 11), phase(1.0 / 20), 1e-12);
  EXPECT_NEAR(learning_rate(s, 31), phase(1.0 / 40), 1e-12);
  s.sgdr_mult = 1;
  EXPECT_NEAR(learning_rate(s, 20), 0, 1e-12);
  EXPECT_NEAR(learning_rate(s, 21), phase(0.1), 1e-12);
  EXPECT_NEAR(learning_rate(s, 1'000'000'000'000'001), phase(0.1), 1e-12);
  s.sgdr_mult = 7;  // no overflow on the way
  EXPECT_TRUE(std::isfinite(learning_rate(s, std::numeric_limits<std::int64_t>::max())));
}

TEST(LearningRate, RandomIsAddressedBySeedAndBatch) {
  Schedule s;
  s.policy = Policy::kRandom;
  s.learning_rate = 2;
  s.power = 1;
  std::set<double> rates;
  double sum = 0;
  for (std::int64_t b = 0; b < 2000; ++b) {
    const double rate = learning_rate(s, b);
    EXPECT_EQ(rate, learning_rate(s, b));
    EXPECT_GE(rate, 0);
    EXPECT_LT(rate, 2);
    rates.insert(rate);
    sum += rate;
  }
  EXPECT_GT(rates.size(), 1990U);
  EXPECT_NEAR(sum / 2000, 1, 0.05);
  Schedule other = s;
  other.seed = 1;
  EXPECT_NE(learning_rate(s, 1), learning_rate(other, 1));
}

TEST(LearningRate, RefusesWhatHasNoRate) {
  const auto message = [](const Schedule& s) -> std::string {
    try {
      check(s, "net.cfg:7");
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidConfig);
      EXPECT_EQ(e.where(), "net.cfg:7");
      return e.message();
    }
    return "";
  };
  Schedule s;
  EXPECT_EQ(message(s), "");
  s.policy = Policy::kSigmoid;
  s.learning_rate = -1;
  EXPECT_EQ(message(s), "policy=sigmoid: learning_rate is -1, want a number >= 0");
  s.learning_rate = 0.001;
  s.policy = Policy::kSteps;
  EXPECT_EQ(message(s), "policy=steps: needs steps= and scales=");
  s.steps = {10, 20};
  s.scales = {0.1};
  EXPECT_EQ(message(s), "policy=steps: steps has 2 values and scales 1; give one scale a step");
  s.scales = {0.1, 0.1};
  EXPECT_EQ(message(s), "");
  s.steps = {20, 10};
  EXPECT_NE(message(s), "");
  s.policy = Policy::kPoly;
  EXPECT_EQ(message(s), "policy=poly: needs max_batches >= 1, it is 0");
  EXPECT_EQ(learning_rate(s, 5), s.learning_rate);
  s.policy = Policy::kSgdr;
  EXPECT_NE(message(s), "");
  s.sgdr_cycle = 5;
  EXPECT_EQ(message(s), "");
  s.sgdr_mult = 0;
  EXPECT_NE(message(s), "");
  EXPECT_TRUE(std::isfinite(learning_rate(s, 1000)));
  s.policy = Policy::kStep;
  s.step = 0;
  EXPECT_EQ(message(s), "policy=step: step is 0, want >= 1");
  EXPECT_EQ(learning_rate(s, 5), s.learning_rate);
}

// reference/training.md section 11: from half of max_batches on, applied once 1000 iterations
// before the end, still from then on.
TEST(Averaging, FollowsTheSecondHalfAndIsAppliedOnce) {
  using ops::Averaging;
  layers::NetSpec net;
  net.max_batches = 3000;
  EXPECT_EQ(averaging_at(net, 2000, true), Averaging::kOff) << "no ema_alpha";
  net.ema_alpha = 0.9F;
  EXPECT_EQ(averaging_at(net, 1499, false), Averaging::kOff);
  EXPECT_EQ(averaging_at(net, 1500, false), Averaging::kStart);
  EXPECT_EQ(averaging_at(net, 1501, true), Averaging::kFollow);
  EXPECT_EQ(averaging_at(net, 1999, true), Averaging::kFollow);
  EXPECT_EQ(averaging_at(net, 2000, true), Averaging::kApply);
  EXPECT_EQ(averaging_at(net, 2001, true), Averaging::kOff);
  EXPECT_EQ(averaging_at(net, 2500, false), Averaging::kStart) << "weights without a state";
  net.max_batches = 0;
  EXPECT_EQ(averaging_at(net, 5, false), Averaging::kOff)
      << "there is no half of a run without end";
}

}  // namespace
}  // namespace lantern::train
