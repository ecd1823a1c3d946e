#include "train/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "layers/net.hpp"

namespace lantern::train {
namespace {

double cosine_between(double low, double high, double fraction) {
  return low + 0.5 * (high - low) * (1 + std::cos(std::numbers::pi * fraction));
}

double sgdr(const Schedule& s, std::int64_t b) {
  std::int64_t cycle = s.sgdr_cycle > 0 ? s.sgdr_cycle : s.max_batches;
  if (cycle < 1) return s.learning_rate;
  std::int64_t start = 0;
  if (s.sgdr_mult <= 1) {
    start = b > cycle ? (b - 1) / cycle * cycle : 0;
  } else {
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    while (cycle < b - start) {  // start + cycle < b, without overflow
      start += cycle;
      cycle = cycle > kMax / s.sgdr_mult ? kMax : cycle * s.sgdr_mult;
    }
  }
  return cosine_between(s.learning_rate_min, s.learning_rate,
                        static_cast<double>(b - start) / static_cast<double>(cycle));
}

std::string_view name_of(Policy policy) {
  return std::ranges::find(layers::policy_words(), static_cast<int>(policy), &cfg::Word::value)
      ->text;
}

}  // namespace

void check(const Schedule& s, const std::string& where) {
  const auto refuse = [&](std::string why) {
    throw Error(ErrorCode::kInvalidConfig, where, "policy={}: {}", name_of(s.policy), why);
  };
  if (!std::isfinite(s.learning_rate) || s.learning_rate < 0) {
    refuse(fmt::format("learning_rate is {}, want a number >= 0", s.learning_rate));
  }
  if (s.burn_in < 0) refuse(fmt::format("burn_in is {}, want >= 0", s.burn_in));
  switch (s.policy) {
    case Policy::kStep:
      if (s.step < 1) refuse(fmt::format("step is {}, want >= 1", s.step));
      break;
    case Policy::kSteps:
      if (s.steps.empty()) refuse("needs steps= and scales=");
      if (s.steps.size() != s.scales.size()) {
        refuse(fmt::format("steps has {} values and scales {}; give one scale a step",
                           s.steps.size(), s.scales.size()));
      }
      if (!std::is_sorted(s.steps.begin(), s.steps.end())) {
        refuse("steps must rise: behind a larger one the rest would wait for it");
      }
      break;
    case Policy::kPoly:
    case Policy::kCosine:
      if (s.max_batches < 1) refuse(fmt::format("needs max_batches >= 1, it is {}", s.max_batches));
      break;
    case Policy::kSgdr:
      if (s.sgdr_cycle < 0 || (s.sgdr_cycle == 0 && s.max_batches < 1)) {
        refuse("needs sgdr_cycle or max_batches >= 1");
      }
      if (s.sgdr_mult < 1) refuse(fmt::format("sgdr_mult is {}, want >= 1", s.sgdr_mult));
      break;
    case Policy::kConstant:
    case Policy::kExp:
    case Policy::kRandom:
    case Policy::kSigmoid:
      break;
  }
}

double learning_rate(const Schedule& s, std::int64_t batch_number) {
  const std::int64_t b = std::max<std::int64_t>(0, batch_number);
  const auto at = static_cast<double>(b);
  if (b < s.burn_in) {
    return s.learning_rate * std::pow(at / static_cast<double>(s.burn_in), s.power);
  }
  switch (s.policy) {
    case Policy::kConstant:
      return s.learning_rate;
    case Policy::kStep:
      if (s.step < 1) return s.learning_rate;
      return s.learning_rate * std::pow(s.scale, static_cast<double>(b / s.step));
    case Policy::kSteps: {
      double rate = s.learning_rate;
      const std::size_t count = std::min(s.steps.size(), s.scales.size());
      for (std::size_t i = 0; i < count && s.steps[i] <= b; ++i) rate *= s.scales[i];
      return rate;
    }
    case Policy::kExp:
      return s.learning_rate * std::pow(s.gamma, at);
    case Policy::kPoly:
      // 0 from max_batches on: there a fractional power would not be a number.
      if (s.max_batches < 1) return s.learning_rate;
      return s.learning_rate *
             std::pow(std::max(0.0, 1 - at / static_cast<double>(s.max_batches)), s.power);
    case Policy::kRandom:
      return s.learning_rate *
             std::pow(static_cast<double>(
                          Rng(s.seed, "learning_rate", static_cast<std::uint64_t>(b)).uniform()),
                      s.power);
    case Policy::kSigmoid:
      return s.learning_rate / (1 + std::exp(s.gamma * (at - static_cast<double>(s.step))));
    case Policy::kSgdr:
      return sgdr(s, b);
    case Policy::kCosine:
      if (s.max_batches < 1) return s.learning_rate;
      return cosine_between(s.learning_rate_min, s.learning_rate,
                            std::min(1.0, at / static_cast<double>(s.max_batches)));
  }
  return s.learning_rate;
}

}  // namespace lantern::train
