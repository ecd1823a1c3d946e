#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lantern::cli {

enum class ValueKind : std::uint8_t {
  kNone,  ///< a switch
  kInt,
  kFloat,
  kText,
  kOptionalText,  ///< `--json` or `--json=FILE`; never takes the next argument
};

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// One flag, declared once: parser, checks and help read this row.
struct Flag {
  std::string_view name;  ///< usual spelling without dashes
  ValueKind kind = ValueKind::kNone;
  std::string_view value = {};      ///< placeholder in the help: "FILE"
  std::string_view otherwise = {};  ///< default; a number where the code reads it from here
  std::string_view doc = {};
  std::string_view used_by = {};  ///< subverbs, separated by blanks; empty: every one
  double min = -kNoLimit;
  double max = kNoLimit;
  std::string_view needs = {};  ///< another flag, without which this one does nothing
  std::string_view refusal =
      {};  ///< not empty: known, but this version refuses it, for this reason

  bool is_used_by(std::string_view subverb) const;
};

/// What was typed after the verb: flags by their table rows, and the rest in order.
class Arguments {
 public:
  explicit Arguments(std::vector<std::span<const Flag>> tables) : tables_(std::move(tables)) {}

  bool has(std::string_view name) const;
  /// The value given, else the table's default.
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  std::string text(std::string_view name) const;
  /// The value given, or nothing.
  std::optional<std::int64_t> given_integer(std::string_view name) const;

  std::vector<std::string> positionals;

 private:
  friend Arguments parse_arguments(std::vector<std::span<const Flag>>, std::string_view,
                                   std::span<const std::string>);
  friend std::vector<std::string> check_use(const Arguments&, std::string_view, std::string_view);
  struct Given {
    const Flag* flag;
    std::string written;  ///< as typed, with dashes
    std::string value;
  };
  const Flag& row(std::string_view name) const;
  std::vector<std::span<const Flag>> tables_;
  std::map<std::string_view, Given> given_;
};

/// For comparison of names: no dashes, no underscores, small letters.
std::string plain_spelling(std::string_view name);

/// Reads flags anywhere: `-flag value`, `--flag value`, `--flag=value`; '-' and '_' inside a name,
/// and capitals, do not matter. `--` ends the flags. Throws kUsage for an unknown flag (with the
/// nearest known one), a missing or wrong value and a flag given twice.
Arguments parse_arguments(std::vector<std::span<const Flag>> tables, std::string_view verb,
                          std::span<const std::string> args);

/// Throws kUsage for a flag that this version refuses; returns one warning for each flag that this
/// subverb has no use for.
std::vector<std::string> check_use(const Arguments& arguments, std::string_view verb,
                                   std::string_view subverb);

/// The rows that a subverb uses, as lines of its help.
std::string flags_help(std::span<const Flag> table, std::string_view subverb);

}  // namespace lantern::cli
