#include "cfg/key.hpp"

namespace lantern::cfg {
namespace {

std::string range_text(const KeyInfo& key) {
  if (key.min && key.max) return fmt::format("{:.9g}..{:.9g}", *key.min, *key.max);
  if (key.min) return fmt::format(">= {:.9g}", *key.min);
  if (key.max) return fmt::format("<= {:.9g}", *key.max);
  return {};
}

std::string words_text(const KeyInfo& key, std::string_view separator) {
  std::string out;
  for (const std::string_view word : key.words) {
    if (!out.empty()) out += separator;
    out += word;
  }
  return out;
}

// What a value may be, in one cell: "int, >= 1, px" or "one of a, b".
std::string value_text(const KeyInfo& key) {
  std::string out =
      key.type == ValueType::kWord ? words_text(key, " | ") : std::string(to_string(key.type));
  if (key.type != ValueType::kWord && !key.words.empty()) out += " | " + words_text(key, " | ");
  if (const std::string range = range_text(key); !range.empty()) out += ", " + range;
  if (!key.unit.empty()) out += ", " + std::string(key.unit);
  return out;
}

std::string escaped(std::string_view text) {  // '|' ends a markdown cell
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string alias_text(const SectionInfo& section) {
  std::string out;
  for (const std::string_view alias : section.aliases)
    out += fmt::format("{}[{}]", out.empty() ? "" : ", ", alias);
  return out;
}

}  // namespace

std::string_view to_string(ValueType type) {
  switch (type) {
    case ValueType::kInt:
      return "int";
    case ValueType::kFloat:
      return "float";
    case ValueType::kText:
      return "text";
    case ValueType::kIntList:
      return "int list";
    case ValueType::kFloatList:
      return "float list";
    case ValueType::kWord:
      return "word";
  }
  return "?";
}

std::string help_text(const SectionInfo& section) {
  std::string out = fmt::format("[{}]  {}\n", section.name, section.doc);
  if (!section.aliases.empty()) out += fmt::format("  also written {}\n", alias_text(section));
  if (section.keys.empty()) out += "  no keys of its own\n";
  for (const KeyInfo& key : section.keys) {
    const std::string standard = key.required ? "mandatory" : "default " + key.default_text;
    out += fmt::format("\n  {} ({})\n      {}\n", key.name, standard, key.doc);
    out += fmt::format("      {}\n", value_text(key));
  }
  return out;
}

std::string markdown(const SectionInfo& section) {
  std::string out = fmt::format("### `[{}]`\n\n{}\n", section.name, section.doc);
  if (!section.aliases.empty()) out += fmt::format("\nAlso written {}.\n", alias_text(section));
  if (section.keys.empty()) return out + "\nNo keys of its own.\n";
  out += "\n| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const KeyInfo& key : section.keys) {
    out += fmt::format("| `{}` | {} | {} | {} |\n", key.name, escaped(value_text(key)),
                       escaped(key.default_text), escaped(key.doc));
  }
  return out;
}

}  // namespace lantern::cfg
