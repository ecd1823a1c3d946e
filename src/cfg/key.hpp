#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cfg/document.hpp"
#include "core/diagnostics.hpp"

namespace lantern::cfg {

/// A word a value may be written as, and the number it stands for. The first of several words with
/// the same number is the one that is written.
struct Word {
  std::string_view text;
  int value;
};

enum class ValueType { kInt, kFloat, kText, kIntList, kFloatList, kWord };
std::string_view to_string(ValueType type);

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// Member of `Spec` that holds an enum, erased to int.
template <typename Spec>
struct WordField {
  void (*set)(Spec&, int);
  int (*get)(const Spec&);
};

/// `word_field<ConvSpec, &ConvSpec::activation>()`; `Spec` may be derived from the member's class.
template <typename Spec, auto Member>
constexpr WordField<Spec> word_field() {
  return {[](Spec& spec, int value) {
            using E = std::remove_cvref_t<decltype(spec.*Member)>;
            spec.*Member = static_cast<E>(value);
          },
          [](const Spec& spec) { return static_cast<int>(spec.*Member); }};
}

/// The key must be given.
struct Required {};

/// The default is computed from keys that stand above in the table; `rule` says how, for the
/// reference page.
template <typename Function>
struct From {
  std::string_view rule;
};
/// `from("= stride", [](const auto& s) { return s.stride; })`
template <typename Function>
constexpr From<Function> from(std::string_view rule, Function) {
  return {rule};
}

template <typename Spec>
class Default {
 public:
  constexpr Default() : value_(0.0) {}
  constexpr Default(int value)
      : value_(static_cast<double>(value)) {}         // NOLINT(google-explicit-constructor)
  constexpr Default(double value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  constexpr Default(const char* text)
      : value_(std::string_view(text)) {}              // NOLINT(google-explicit-constructor)
  constexpr Default(Required) : value_(Required{}) {}  // NOLINT(google-explicit-constructor)
  template <typename Function>
  constexpr Default(From<Function> source)  // NOLINT(google-explicit-constructor)
      : value_(Rule{source.rule,
                    [](const Spec& spec) { return static_cast<double>(Function{}(spec)); }}) {}

  struct Rule {
    std::string_view text;
    double (*compute)(const Spec&);
  };
  const std::variant<double, std::string_view, Required, Rule>& value() const { return value_; }

 private:
  std::variant<double, std::string_view, Required, Rule> value_;
};

/// One key of a section, declared once: parser, range check, spelling hint, help, reference page
/// and the fuzzer's dictionary read it.
template <typename Spec>
struct Key {
  using Field = std::variant<int Spec::*, std::int64_t Spec::*, float Spec::*, std::string Spec::*,
                             std::vector<int> Spec::*, std::vector<float> Spec::*,
                             std::optional<int> Spec::*, WordField<Spec>>;
  std::string_view name;
  Field field;
  Default<Spec> otherwise = {};
  double min = -kUnbounded;  ///< of the number, or of every item of a list
  double max = kUnbounded;
  std::string_view unit = {};
  std::string_view doc = {};
  std::span<const Word> words = {};  ///< all values of an enum; special values of a number
  bool is_path = false;              ///< text in which blanks are kept
  bool truncates = false;            ///< int that Darknet reads as a float and truncates
};

/// A key as the help, the docs and JSON listings show it.
struct KeyInfo {
  std::string_view name;
  ValueType type;
  std::string default_text;  ///< "1", "leaky", "= stride", "none", "mandatory"
  bool required = false;
  std::optional<double> min, max;
  std::string_view unit;
  std::string_view doc;
  std::vector<std::string_view> words;
};

/// A whole section for help and docs.
struct SectionInfo {
  std::string_view name;
  std::vector<std::string_view> aliases;
  std::string_view doc;
  std::vector<KeyInfo> keys;
};

/// Plain text for `lantern help maxpool`.
std::string help_text(const SectionInfo& section);
/// Heading and key table for the reference page.
std::string markdown(const SectionInfo& section);

/// Reads the options of one section into Specs; several tables may share a section.
class SectionReader {
 public:
  SectionReader(const std::string& path, const Section& section, Diagnostics& diagnostics)
      : path_(path), section_(section), diagnostics_(diagnostics), taken_(section.options.size()) {}

  const Section& section() const { return section_; }
  Diagnostics& diagnostics() { return diagnostics_; }
  /// Position of the key's line, or of the section header when the key is not given.
  std::string where(std::string_view key = {}) const;
  /// True when the section gives `key` a value.
  bool has(std::string_view key) const { return find(key) != nullptr; }

  /// Sets every member named in `keys`: from the file, else its default.
  template <typename Spec>
  void read(Spec& spec, std::span<const Key<Spec>> keys);

  /// Warns of every option that no table has claimed, with a spelling hint. Call once, last.
  void report_unknown_keys() const;

 private:
  struct Rule {  // what the untyped parsers need of a Key
    std::string_view name;
    double min, max;
    std::span<const Word> words;
    bool truncates;
  };
  struct Number {
    double value;
  };

  const Option* find(std::string_view key) const;
  // The option to read, marked as known; reports `key=` without a value.
  const Option* take(std::string_view key, bool required);
  std::optional<std::int64_t> read_int(const Option& option, const Rule& rule) const;
  std::optional<double> read_float(const Option& option, const Rule& rule) const;
  std::optional<std::vector<int>> read_int_list(const Option& option, const Rule& rule) const;
  std::optional<std::vector<float>> read_float_list(const Option& option, const Rule& rule) const;
  std::optional<int> read_word(const Option& option, const Rule& rule) const;
  std::string strip(const Option& option) const;

  std::string path_;
  const Section& section_;
  Diagnostics& diagnostics_;
  std::vector<bool> taken_;
  std::vector<std::string_view> known_;
};

/// Numbers of a list default such as "1,2.5".
std::vector<float> parse_default_list(std::string_view text);
/// Value of a word in `words`; our own tables only.
int word_value(std::span<const Word> words, std::string_view text);
/// The word of a value, or its number.
std::string word_text(std::span<const Word> words, double value);

template <typename Spec>
KeyInfo describe(const Key<Spec>& key) {
  KeyInfo info{.name = key.name,
               .type = ValueType::kInt,
               .default_text = {},
               .min = {},
               .max = {},
               .unit = key.unit,
               .doc = key.doc,
               .words = {}};
  struct TypeOf {
    ValueType operator()(int Spec::*) const { return ValueType::kInt; }
    ValueType operator()(std::int64_t Spec::*) const { return ValueType::kInt; }
    ValueType operator()(std::optional<int> Spec::*) const { return ValueType::kInt; }
    ValueType operator()(float Spec::*) const { return ValueType::kFloat; }
    ValueType operator()(std::string Spec::*) const { return ValueType::kText; }
    ValueType operator()(std::vector<int> Spec::*) const { return ValueType::kIntList; }
    ValueType operator()(std::vector<float> Spec::*) const { return ValueType::kFloatList; }
    ValueType operator()(WordField<Spec>) const { return ValueType::kWord; }
  };
  info.type = std::visit(TypeOf{}, key.field);
  if (key.min != -kUnbounded) info.min = key.min;
  if (key.max != kUnbounded) info.max = key.max;
  for (const Word& word : key.words) info.words.push_back(word.text);
  using Rule = typename Default<Spec>::Rule;
  const auto& otherwise = key.otherwise.value();
  if (std::holds_alternative<Required>(otherwise)) {
    info.required = true;
    info.default_text = "mandatory";
  } else if (const auto* rule = std::get_if<Rule>(&otherwise)) {
    info.default_text = rule->text;
  } else if (const auto* text = std::get_if<std::string_view>(&otherwise)) {
    info.default_text = text->empty() ? "none" : std::string(*text);
  } else if (std::holds_alternative<std::optional<int> Spec::*>(key.field) ||
             info.type == ValueType::kText || info.type == ValueType::kIntList ||
             info.type == ValueType::kFloatList) {
    info.default_text = "none";
  } else {
    info.default_text = word_text(key.words, std::get<double>(otherwise));
  }
  return info;
}

template <typename Spec>
std::vector<KeyInfo> describe_all(std::span<const Key<Spec>> keys) {
  std::vector<KeyInfo> infos;
  for (const Key<Spec>& key : keys) infos.push_back(describe(key));
  return infos;
}

template <typename Spec>
void SectionReader::read(Spec& spec, std::span<const Key<Spec>> keys) {
  using D = Default<Spec>;
  for (const Key<Spec>& key : keys) {
    const auto& otherwise = key.otherwise.value();
    const bool required = std::holds_alternative<Required>(otherwise);
    const Option* option = take(key.name, required);
    const Rule rule{key.name, key.min, key.max, key.words, key.truncates};
    double number = 0;
    std::string_view text;
    if (const auto* n = std::get_if<double>(&otherwise)) number = *n;
    if (const auto* r = std::get_if<typename D::Rule>(&otherwise)) number = r->compute(spec);
    if (const auto* t = std::get_if<std::string_view>(&otherwise)) text = *t;

    struct Store {
      SectionReader& reader;
      Spec& spec;
      const Key<Spec>& key;
      const Option* option;
      const Rule& rule;
      double number;
      std::string_view text;

      void operator()(int Spec::*field) const {
        const auto value = option ? reader.read_int(*option, rule) : std::nullopt;
        spec.*field = value ? static_cast<int>(*value) : static_cast<int>(number);
      }
      void operator()(std::int64_t Spec::*field) const {
        const auto value = option ? reader.read_int(*option, rule) : std::nullopt;
        spec.*field = value ? *value : static_cast<std::int64_t>(number);
      }
      void operator()(std::optional<int> Spec::*field) const {
        const auto value = option ? reader.read_int(*option, rule) : std::nullopt;
        spec.*field = value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
      }
      void operator()(float Spec::*field) const {
        const auto value = option ? reader.read_float(*option, rule) : std::nullopt;
        spec.*field = static_cast<float>(value ? *value : number);
      }
      void operator()(std::string Spec::*field) const {
        spec.*field = !option       ? std::string(text)
                      : key.is_path ? option->value
                                    : without_blanks(option->value);
      }
      void operator()(std::vector<int> Spec::*field) const {
        auto value = option ? reader.read_int_list(*option, rule) : std::nullopt;
        if (value) {
          spec.*field = std::move(*value);
          return;
        }
        const std::vector<float> items = parse_default_list(text);
        (spec.*field).assign(items.begin(), items.end());
      }
      void operator()(std::vector<float> Spec::*field) const {
        auto value = option ? reader.read_float_list(*option, rule) : std::nullopt;
        spec.*field = value ? std::move(*value) : parse_default_list(text);
      }
      void operator()(const WordField<Spec>& field) const {
        const auto value = option ? reader.read_word(*option, rule) : std::nullopt;
        const int standard = text.empty() ? static_cast<int>(number) : word_value(key.words, text);
        field.set(spec, value ? *value : standard);
      }
    };
    std::visit(Store{*this, spec, key, option, rule, number, text}, key.field);
  }
}

}  // namespace lantern::cfg
