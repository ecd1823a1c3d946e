#include "cli/help_pages.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "core/error.hpp"
#include "layers/compatibility.hpp"
#include "layers/network.hpp"

namespace lantern::cli {

namespace {

using layers::Effect;
using layers::KeyStatus;

constexpr std::array kEffects{Effect::kAsDarknet, Effect::kOurs, Effect::kNone, Effect::kRefused};

// The layer sections' common keys as one more section.
std::vector<cfg::SectionInfo> all_sections() {
  std::vector<cfg::SectionInfo> sections = layers::section_reference();
  sections.push_back(layers::common_reference());
  return sections;
}

const KeyStatus& status_of(const cfg::SectionInfo& section, std::string_view key) {
  const KeyStatus* status = layers::find_status(section.name, key);
  LANTERN_ASSERT(status != nullptr, "every section and key has its status");
  return *status;
}

std::string count_row(const cfg::SectionInfo& section) {
  std::array<int, kEffects.size()> counts{};
  for (const cfg::KeyInfo& key : section.keys)
    ++counts[static_cast<std::size_t>(status_of(section, key.name).effect)];
  std::string names = fmt::format("`[{}]`", section.name);
  for (const std::string_view alias : section.aliases) names += fmt::format(", `[{}]`", alias);
  std::string row = fmt::format("| {} | {} |", names, to_string(status_of(section, {}).effect));
  for (const int count : counts) row += count == 0 ? " |" : fmt::format(" {} |", count);
  return row + "\n";
}

std::string section_table(const cfg::SectionInfo& section) {
  const KeyStatus& whole = status_of(section, {});
  std::string text = fmt::format("\n## `[{}]`\n\n{}", section.name, to_string(whole.effect));
  text += whole.reason.empty() ? "\n" : fmt::format(": {}\n", whole.reason);
  if (section.keys.empty()) return text + "\nNo keys of its own.\n";
  text += "\n| key | here | remark |\n|---|---|---|\n";
  for (const cfg::KeyInfo& key : section.keys) {
    const KeyStatus& status = status_of(section, key.name);
    text += fmt::format("| `{}` | {} |{} |\n", key.name, to_string(status.effect),
                        status.reason.empty() ? "" : fmt::format(" {}", status.reason));
  }
  return text;
}

}  // namespace

std::string cfg_reference() {
  std::string out =
      "# Sections and keys of a cfg\n\n"
      "Written by `lantern help cfg -markdown`; do not edit. What differs from Darknet, and what "
      "is "
      "refused, is in [compatibility.md](compatibility.md).\n\n";
  for (const cfg::SectionInfo& section : layers::section_reference()) {
    out += cfg::markdown(section) + "\n";
  }
  out += cfg::markdown(layers::common_reference());
  return out;
}

std::string compatibility_page() {
  std::string text =
      "# What differs from Darknet\n\n"
      "Written by `lantern help compatibility -markdown`; do not edit. Meaning, default and range "
      "of the keys are in [cfg-reference.md](cfg-reference.md).\n\n"
      "| word | meaning |\n|---|---|\n"
      "| as Darknet | does what Darknet's build for cards does, up to random draws and rounding |\n"
      "| ours | a key that Darknet does not have, or one that works in another way here |\n"
      "| without effect | read and checked, changes nothing |\n"
      "| refused | any value but the default is an error before anything runs |\n\n"
      "Sections, and their keys by number:\n\n"
      "| section | here | as Darknet | ours | without effect | refused |\n"
      "|---|---|---:|---:|---:|---:|\n";
  const std::vector<cfg::SectionInfo> sections = all_sections();
  for (const cfg::SectionInfo& section : sections) text += count_row(section);
  for (const cfg::SectionInfo& section : sections) text += section_table(section);
  return text;
}

std::string compatibility_text() {
  std::string text =
      "Keys that do not do what they do in Darknet; -markdown prints every section and key.\n";
  for (const cfg::SectionInfo& section : all_sections()) {
    std::string lines;
    for (const cfg::KeyInfo& key : section.keys) {
      const KeyStatus& status = status_of(section, key.name);
      if (status.effect == Effect::kAsDarknet) continue;
      lines += fmt::format("  {:<30} {}: {}\n", key.name, to_string(status.effect), status.reason);
    }
    if (!lines.empty()) text += fmt::format("\n[{}]\n{}", section.name, lines);
  }
  return text;
}

}  // namespace lantern::cli
