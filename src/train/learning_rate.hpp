#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lantern::train {

enum class Policy : std::uint8_t {
  kConstant,
  kStep,
  kSteps,
  kExp,
  kPoly,
  kRandom,
  kSigmoid,
  kSgdr,
  kCosine,  ///< ours: sgdr with a single cycle of max_batches
};

struct PolicyName {
  std::string_view name;
  Policy value;
};

/// The one table from which parser, writer and help read the names; the first of two names is the
/// written one.
inline constexpr std::array kPolicyNames{
    PolicyName{"constant", Policy::kConstant}, PolicyName{"step", Policy::kStep},
    PolicyName{"steps", Policy::kSteps},       PolicyName{"exp", Policy::kExp},
    PolicyName{"poly", Policy::kPoly},         PolicyName{"random", Policy::kRandom},
    PolicyName{"sigmoid", Policy::kSigmoid},   PolicyName{"sig", Policy::kSigmoid},
    PolicyName{"sgdr", Policy::kSgdr},         PolicyName{"cosine", Policy::kCosine},
};

std::optional<Policy> parse_policy(std::string_view name);
std::string_view to_string(Policy policy);
/// "constant, step, steps, ...", for messages.
std::string policy_list();

/// The keys of [net] that set the learning rate, with the reference's defaults
/// (reference/training.md 8).
struct Schedule {
  Policy policy = Policy::kConstant;
  double learning_rate = 0.001;
  double learning_rate_min = 1e-5;  ///< sgdr, cosine
  double power = 4;                 ///< poly, random and every burn-in
  double gamma = 1;                 ///< exp, sigmoid
  double scale = 1;                 ///< step
  std::int64_t step = 1;            ///< step, sigmoid
  std::vector<std::int64_t> steps;  ///< steps
  std::vector<double> scales;
  std::int64_t burn_in = 0;
  std::int64_t max_batches = 0;
  std::int64_t sgdr_cycle = 0;  ///< 0: max_batches
  std::int64_t sgdr_mult = 2;
  std::uint64_t seed = 0;  ///< random: its draw is addressed by (seed, batch number)
};

/// Throws an Error (kInvalidConfig, at `where`) for a schedule whose rate is not defined: lists of
/// unequal length or empty, steps that do not rise, a step or cycle below 1, poly or cosine without
/// max_batches, a negative rate.
void check(const Schedule& schedule, const std::string& where);

/// Rate of the update with this batch number (1 is the first update). Pure and defined for every
/// schedule; what `check` refuses gives the constant rate.
double learning_rate(const Schedule& schedule, std::int64_t batch_number);

}  // namespace lantern::train
