#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "cfg/key.hpp"
#include "core/text.hpp"

namespace lantern::cfg {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string number_text(double value) { return fmt::format("{:.9g}", value); }

// The leading number of `text` and what follows it; the number is missing when there are no digits.
template <typename T>
struct Leading {
  std::optional<T> value;
  std::string_view rest;
  bool overflows = false;
};

template <typename T>
Leading<T> leading_number(std::string_view text) {
  std::string_view body = text;
  if (body.starts_with('+') && !body.substr(1).starts_with('-')) body.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), value);
  Leading<T> out;
  out.rest = body.substr(static_cast<std::size_t>(end - body.data()));
  if (error == std::errc{}) out.value = value;
  out.overflows = error == std::errc::result_out_of_range;
  return out;
}

std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 60)) out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return out + (text.size() > 60 ? "..." : "");
}

std::string join_words(std::span<const Word> words) {
  std::string out;
  for (const Word& word : words) out += (out.empty() ? "" : ", ") + std::string(word.text);
  return out;
}

}  // namespace

std::string SectionReader::where(std::string_view key) const {
  const Option* option = key.empty() ? nullptr : find(key);
  if (option == nullptr && !key.empty()) {
    const auto it = std::ranges::find(section_.options, key, &Option::key);
    if (it != section_.options.end()) option = &*it;
  }
  return option ? cfg::where(path_, option->line, option->column)
                : cfg::where(path_, section_.line);
}

const Option* SectionReader::find(std::string_view key) const {
  // Darknet keeps the first of several; a line without a value does not count.
  for (const Option& option : section_.options) {
    if (option.key == key && !option.value.empty()) return &option;
  }
  return nullptr;
}

const Option* SectionReader::take(std::string_view key, bool required) {
  known_.push_back(key);
  const Option* valued = find(key);
  for (std::size_t i = 0; i < section_.options.size(); ++i) {
    const Option& option = section_.options[i];
    if (option.key != key) continue;
    taken_[i] = true;
    if (option.value.empty() && !(required && valued == nullptr)) {
      diagnostics_.warning(cfg::where(path_, option.line, option.column),
                           "[{}] {} has no value; the line is ignored", section_.name, key);
    }
  }
  if (required && valued == nullptr) {
    const bool written =
        std::ranges::any_of(section_.options, [&](const Option& o) { return o.key == key; });
    diagnostics_.error(where(key), "[{}] {} {}; it must be given", section_.name, key,
                       written ? "has no value" : "is missing");
  }
  return valued;
}

void SectionReader::report_unknown_keys() const {
  for (std::size_t i = 0; i < section_.options.size(); ++i) {
    if (taken_[i]) continue;
    const Option& option = section_.options[i];
    const auto hint = nearest(option.key, known_);
    diagnostics_.warning(cfg::where(path_, option.line, option.column), "[{}] has no key '{}'{}",
                         section_.name, shown(option.key),
                         hint ? fmt::format("; did you mean '{}'?", *hint) : "; it is ignored");
  }
}

std::string SectionReader::strip(const Option& option) const {
  const std::string& value = option.value;
  for (std::size_t i = 1; i + 1 < value.size(); ++i) {
    if (value[i] != ' ' && value[i] != '\t') continue;
    const std::size_t next = value.find_first_not_of(" \t", i);
    const char before = value[i - 1];
    const bool joins = next != std::string::npos && (is_digit(before) || before == '.') &&
                       (is_digit(value[next]) || value[next] == '.');
    if (joins) {
      diagnostics_.warning(
          cfg::where(path_, option.line, option.value_column + static_cast<int>(i)),
          "[{}] {}: blanks are deleted, so the numbers on both sides become one; put a comma "
          "between them",
          section_.name, option.key);
    }
    if (next == std::string::npos) break;
    i = next;
  }
  return without_blanks(value);
}

std::optional<std::int64_t> SectionReader::read_int(const Option& option, const Rule& rule) const {
  const std::string text = strip(option);
  const std::string at = cfg::where(path_, option.line, option.column);
  for (const Word& word : rule.words) {
    if (word.text == text) return word.value;
  }
  if (rule.truncates) {
    const auto value = read_float(option, rule);
    if (!value) return std::nullopt;
    return static_cast<std::int64_t>(std::clamp(*value, -2147483648.0, 2147483647.0));
  }
  const Leading<std::int64_t> number = leading_number<std::int64_t>(text);
  const auto as_float = leading_number<double>(text);
  const std::string also = rule.words.empty() ? "" : " or " + join_words(rule.words);
  if (number.overflows) {
    diagnostics_.error(at, "[{}] {} is {}, which is too large", section_.name, rule.name,
                       shown(text));
    return std::nullopt;
  }
  if (!number.value && !as_float.value) {
    diagnostics_.error(at, "[{}] {} is '{}', want an integer{}", section_.name, rule.name,
                       shown(text), also);
    return std::nullopt;
  }
  const std::int64_t value = number.value.value_or(0);
  const bool whole =
      number.rest.empty() || (number.value && as_float.rest.empty() && as_float.value &&
                              *as_float.value == static_cast<double>(value));
  if (!whole) {
    diagnostics_.warning(at, "[{}] {} is '{}', not an integer; it is read as {}", section_.name,
                         rule.name, shown(text), value);
  }
  const double low = std::max(rule.min, static_cast<double>(std::numeric_limits<int>::min()));
  const double high =
      rule.max == kUnbounded ? static_cast<double>(std::numeric_limits<int>::max()) : rule.max;
  if (static_cast<double>(value) < low || static_cast<double>(value) > high) {
    diagnostics_.error(at, "[{}] {} is {}, want {} {}{}", section_.name, rule.name, value,
                       static_cast<double>(value) < low ? ">=" : "<=",
                       number_text(static_cast<double>(value) < low ? low : high), also);
    return std::nullopt;
  }
  return value;
}

std::optional<double> SectionReader::read_float(const Option& option, const Rule& rule) const {
  std::string text = strip(option);
  const std::string at = cfg::where(path_, option.line, option.column);
  for (const Word& word : rule.words) {
    if (word.text == text) return word.value;
  }
  Leading<double> number = leading_number<double>(text);
  if (number.overflows) number.value = std::numeric_limits<double>::infinity();
  if (!number.value) {
    diagnostics_.error(at, "[{}] {} is '{}', want a number", section_.name, rule.name, shown(text));
    return std::nullopt;
  }
  if (!number.rest.empty() && number.rest != "%") {
    diagnostics_.warning(at, "[{}] {} is '{}'; it is read as {}", section_.name, rule.name,
                         shown(text), number_text(*number.value));
  }
  const double value = *number.value;
  // A double that does not fit a float would become infinite silently.
  if (!std::isfinite(value) ||
      std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) {
    diagnostics_.error(at, "[{}] {} is {}, want a finite number", section_.name, rule.name,
                       shown(text));
    return std::nullopt;
  }
  if (value < rule.min || value > rule.max) {
    diagnostics_.error(
        at, "[{}] {} is {}, want {} {}", section_.name, rule.name, number_text(value),
        value < rule.min ? ">=" : "<=", number_text(value < rule.min ? rule.min : rule.max));
    return std::nullopt;
  }
  return value;
}

std::optional<std::vector<float>> SectionReader::read_float_list(const Option& option,
                                                                 const Rule& rule) const {
  const std::string text = strip(option);
  const std::string at = cfg::where(path_, option.line, option.column);
  std::vector<float> items;
  std::vector<std::string_view> parts = split(text, ',');
  if (parts.back().empty()) {
    // Darknet reads the nothing after it as one more item, 0 (layers.md L5).
    diagnostics_.warning(at, "[{}] {} ends with a comma; it is ignored", section_.name, rule.name);
    parts.pop_back();
  }
  for (const std::string_view part : parts) {
    const Leading<double> number = leading_number<double>(part);
    const bool fits = number.value && std::isfinite(static_cast<float>(*number.value));
    if (!fits) {
      diagnostics_.error(at, "[{}] {}: item {} is '{}', want a finite number", section_.name,
                         rule.name, items.size() + 1, shown(part));
      return std::nullopt;
    }
    if (!number.rest.empty()) {
      diagnostics_.warning(at, "[{}] {}: item {} is '{}'; it is read as {}", section_.name,
                           rule.name, items.size() + 1, shown(part), number_text(*number.value));
    }
    if (*number.value < rule.min || *number.value > rule.max) {
      diagnostics_.error(at, "[{}] {}: item {} is {}, want {} {}", section_.name, rule.name,
                         items.size() + 1, number_text(*number.value),
                         *number.value < rule.min ? ">=" : "<=",
                         number_text(*number.value < rule.min ? rule.min : rule.max));
      return std::nullopt;
    }
    items.push_back(static_cast<float>(*number.value));
  }
  return items;
}

std::optional<std::vector<int>> SectionReader::read_int_list(const Option& option,
                                                             const Rule& rule) const {
  const std::string text = strip(option);
  const std::string at = cfg::where(path_, option.line, option.column);
  std::vector<int> items;
  std::vector<std::string_view> parts = split(text, ',');
  if (parts.back().empty()) {
    diagnostics_.warning(at, "[{}] {} ends with a comma; it is ignored", section_.name, rule.name);
    parts.pop_back();
  }
  for (const std::string_view part : parts) {
    const Leading<std::int64_t> number = leading_number<std::int64_t>(part);
    if (!number.value || *number.value < std::numeric_limits<int>::min() ||
        *number.value > std::numeric_limits<int>::max()) {
      diagnostics_.error(at, "[{}] {}: item {} is '{}', want an integer", section_.name, rule.name,
                         items.size() + 1, shown(part));
      return std::nullopt;
    }
    const double value = static_cast<double>(*number.value);
    const Leading<double> as_float = leading_number<double>(part);
    if (!number.rest.empty() && !(as_float.rest.empty() && as_float.value == value)) {
      diagnostics_.warning(at, "[{}] {}: item {} is '{}'; it is read as {}", section_.name,
                           rule.name, items.size() + 1, shown(part), *number.value);
    }
    if (value < rule.min || value > rule.max) {
      diagnostics_.error(at, "[{}] {}: item {} is {}, want {} {}", section_.name, rule.name,
                         items.size() + 1, *number.value, value < rule.min ? ">=" : "<=",
                         number_text(value < rule.min ? rule.min : rule.max));
      return std::nullopt;
    }
    items.push_back(static_cast<int>(*number.value));
  }
  return items;
}

std::optional<int> SectionReader::read_word(const Option& option, const Rule& rule) const {
  const std::string text = without_blanks(option.value);
  for (const Word& word : rule.words) {
    if (word.text == text) return word.value;
  }
  std::vector<std::string_view> candidates;
  for (const Word& word : rule.words) candidates.push_back(word.text);
  const auto hint = nearest(text, candidates);
  diagnostics_.error(cfg::where(path_, option.line, option.column),
                     "[{}] {} is '{}'{}; want one of {}", section_.name, rule.name, shown(text),
                     hint ? fmt::format(", did you mean '{}'?", *hint) : "",
                     join_words(rule.words));
  return std::nullopt;
}

std::vector<float> parse_default_list(std::string_view text) {
  std::vector<float> items;
  if (text.empty()) return items;
  for (const std::string_view part : split(text, ',')) {
    items.push_back(static_cast<float>(parse_float(part).value_or(0)));
  }
  return items;
}

int word_value(std::span<const Word> words, std::string_view text) {
  for (const Word& word : words) {
    if (word.text == text) return word.value;
  }
  LANTERN_ASSERT(false, "a default must be one of the words of its table");
  return 0;
}

std::string word_text(std::span<const Word> words, double value) {
  for (const Word& word : words) {
    if (static_cast<double>(word.value) == value) return std::string(word.text);
  }
  return value == static_cast<double>(std::numeric_limits<float>::max()) ? "FLT_MAX"
                                                                         : number_text(value);
}

}  // namespace lantern::cfg
