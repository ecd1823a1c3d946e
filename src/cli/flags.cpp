#include "cli/flags.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"

namespace lantern::cli {

std::string plain_spelling(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '-' && c != '_') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

namespace {

using Tables = std::span<const std::span<const Flag>>;

// "-5" and "-" are values, "-x" is a flag.
bool looks_like_flag(std::string_view text) {
  return text.size() > 1 && text.front() == '-' && !parse_float(text);
}

const Flag* find(Tables tables, std::string_view name) {
  const std::string wanted = plain_spelling(name);
  if (wanted.empty()) return nullptr;
  for (const std::span<const Flag> table : tables) {
    for (const Flag& flag : table) {
      if (plain_spelling(flag.name) == wanted) return &flag;
    }
  }
  return nullptr;
}

// What was meant by an unknown flag: two words that are one flag ("-dont show"), a small
// misspelling, or the beginning of a flag.
std::string suggestion(Tables tables, std::string_view name, std::string_view next) {
  const Flag* joined = find(tables, std::string(name) + std::string(next));
  if (joined != nullptr && !next.empty()) {
    return fmt::format("; did you mean -{} (one word)?", joined->name);
  }
  const std::string wanted = plain_spelling(name);
  std::vector<std::string> spellings;
  std::vector<std::string_view> names;
  for (const std::span<const Flag> table : tables) {
    for (const Flag& flag : table) {
      spellings.push_back(plain_spelling(flag.name));
      names.push_back(flag.name);
    }
  }
  const std::vector<std::string_view> candidates(spellings.begin(), spellings.end());
  auto place = candidates.end();
  if (const auto best = nearest(wanted, candidates)) {
    place = std::ranges::find(candidates, *best);
  } else if (wanted.size() >= 3) {
    place = std::ranges::find_if(candidates,
                                 [&](std::string_view each) { return each.starts_with(wanted); });
  }
  if (place == candidates.end()) return {};
  return fmt::format("; did you mean -{}?",
                     names[static_cast<std::size_t>(place - candidates.begin())]);
}

void check_value(const Flag& flag, const std::string& written, const std::string& value) {
  if (value.empty()) {
    throw Error(ErrorCode::kUsage, "", "{} needs a value ({}), it is empty", written, flag.value);
  }
  const bool is_int = flag.kind == ValueKind::kInt;
  if (!is_int && flag.kind != ValueKind::kFloat) return;
  std::optional<double> number = parse_float(value);
  if (is_int && !parse_int(value)) number.reset();
  if (!number) {
    throw Error(ErrorCode::kUsage, "", "{} is '{}', want {}", written, value,
                is_int ? "a whole number" : "a number");
  }
  if (!(*number >= flag.min && *number <= flag.max)) {
    const std::string range = flag.max == kNoLimit ? fmt::format("at least {}", flag.min)
                                                   : fmt::format("{} to {}", flag.min, flag.max);
    throw Error(ErrorCode::kUsage, "", "{} is {}, want {}", written, value, range);
  }
}

}  // namespace

bool Flag::is_used_by(std::string_view subverb) const {
  if (used_by.empty()) return true;
  const std::vector<std::string_view> words = split(used_by, ' ');
  return std::ranges::find(words, subverb) != words.end();
}

const Flag& Arguments::row(std::string_view name) const {
  const Flag* flag = find(tables_, name);
  LANTERN_ASSERT(flag != nullptr, "the code asks only for flags of the verb's table");
  return *flag;
}

bool Arguments::has(std::string_view name) const { return given_.contains(row(name).name); }

std::string Arguments::text(std::string_view name) const {
  const Flag& flag = row(name);
  const auto found = given_.find(flag.name);
  return found == given_.end() ? std::string(flag.otherwise) : found->second.value;
}

std::int64_t Arguments::integer(std::string_view name) const {
  const std::optional<std::int64_t> value = parse_int(text(name));
  LANTERN_ASSERT(value.has_value(), "an integer flag has a default or was checked");
  return *value;
}

double Arguments::number(std::string_view name) const {
  const std::optional<double> value = parse_float(text(name));
  LANTERN_ASSERT(value.has_value(), "a number flag has a default or was checked");
  return *value;
}

std::optional<std::int64_t> Arguments::given_integer(std::string_view name) const {
  return has(name) ? std::optional(integer(name)) : std::nullopt;
}

Arguments parse_arguments(std::vector<std::span<const Flag>> tables, std::string_view verb,
                          std::span<const std::string> args) {
  Arguments result(std::move(tables));
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& word = args[i];
    if (word == "--") {
      result.positionals.insert(result.positionals.end(), args.begin() + static_cast<long>(i) + 1,
                                args.end());
      break;
    }
    if (word.empty()) {  // as a path it would mean "none given"
      throw Error(ErrorCode::kUsage, "", "{}: argument {} is empty (a variable that is not set?)",
                  verb, i + 1);
    }
    if (!looks_like_flag(word)) {
      result.positionals.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string written = word.substr(0, equals);
    const Flag* flag = find(result.tables_, written);
    const bool has_next = i + 1 < args.size();
    if (flag == nullptr) {
      throw Error(ErrorCode::kUsage, "", "{}: unknown flag {}{}", verb, written,
                  suggestion(result.tables_, written, has_next ? args[i + 1] : ""));
    }
    std::string value;
    if (equals != std::string::npos) {
      if (flag->kind == ValueKind::kNone) {
        throw Error(ErrorCode::kUsage, "", "{} takes no value", written);
      }
      value = word.substr(equals + 1);
    } else if (flag->kind != ValueKind::kNone && flag->kind != ValueKind::kOptionalText) {
      if (!has_next || looks_like_flag(args[i + 1])) {
        throw Error(ErrorCode::kUsage, "", "{} needs a value ({}){}", written, flag->value,
                    has_next ? fmt::format("; {} is read as the next flag", args[i + 1]) : "");
      }
      value = args[++i];
    }
    const bool has_value = equals != std::string::npos || (flag->kind != ValueKind::kNone &&
                                                           flag->kind != ValueKind::kOptionalText);
    if (has_value) check_value(*flag, written, value);
    if (!result.given_.try_emplace(flag->name, Arguments::Given{flag, written, value}).second) {
      throw Error(ErrorCode::kUsage, "", "{} is given twice", written);
    }
  }
  return result;
}

std::vector<std::string> check_use(const Arguments& arguments, std::string_view verb,
                                   std::string_view subverb) {
  std::vector<std::string> warnings;
  for (const auto& [name, given] : arguments.given_) {
    if (!given.flag->is_used_by(subverb)) {
      warnings.push_back(fmt::format("{} has no use for {}; it is ignored", verb, given.written));
    } else if (!given.flag->refusal.empty()) {
      throw Error(ErrorCode::kUsage, "", "{} is not available: {}", given.written,
                  given.flag->refusal);
    } else if (!given.flag->needs.empty() && !arguments.has(given.flag->needs)) {
      warnings.push_back(
          fmt::format("{} does nothing without -{}", given.written, given.flag->needs));
    }
  }
  return warnings;
}

std::string flags_help(std::span<const Flag> table, std::string_view subverb) {
  std::string out;
  for (const Flag& flag : table) {
    if (!flag.is_used_by(subverb) || !flag.refusal.empty()) continue;
    std::string left = fmt::format("-{}", flag.name);
    if (flag.kind == ValueKind::kOptionalText) left += fmt::format("[={}]", flag.value);
    if (flag.kind != ValueKind::kNone && flag.kind != ValueKind::kOptionalText) {
      left += fmt::format(" {}", flag.value);
    }
    std::string right(flag.doc);
    if (!flag.otherwise.empty()) right += fmt::format(" (default {})", flag.otherwise);
    out += left.size() < 24 ? fmt::format("  {:<24}{}\n", left, right)
                            : fmt::format("  {}\n  {:<24}{}\n", left, "", right);
  }
  return out;
}

}  // namespace lantern::cli
