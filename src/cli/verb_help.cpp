#include <fmt/format.h>

#include <array>

#include "cli/help_pages.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "device/machine.hpp"
#include "layers/network.hpp"

namespace lantern::cli {

namespace {

std::string sections_help() {
  std::string out = "Sections of a cfg; `lantern help SECTION` lists the keys of one.\n\n";
  for (const cfg::SectionInfo& section : layers::section_reference()) {
    out += fmt::format("  {:<20}{}\n", section.name, section.doc);
  }
  return out + "\n`lantern help common` lists the keys that every layer section has.\n";
}

std::string_view without_brackets(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) return text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

std::string_view Verb::family() const { return name.substr(0, name.find(' ')); }

std::string_view Verb::subverb() const {
  const std::size_t blank = name.find(' ');
  return blank == std::string_view::npos ? std::string_view{} : name.substr(blank + 1);
}

std::string verb_help(const Verb& verb) {
  std::string out = fmt::format("lantern {}{}{}{}\n\n{}\n\nFlags\n", verb.name,
                                verb.usage.empty() ? "" : " ", verb.usage, " [flags]", verb.doc);
  out += flags_help(verb.flags, verb.subverb());
  out += flags_help(common_flags(), verb.subverb());
  out += fmt::format("\nExample\n  {}\n", verb.example);
  return out;
}

std::string program_help() {
  std::string out =
      "Lantern trains and runs Darknet networks.\n\n"
      "usage: lantern <verb> ... [flags]\n\nVerbs\n";
  for (const Verb& verb : verbs()) {
    const std::string left = fmt::format("{} {}", verb.name, verb.usage);
    out += left.size() < 52 ? fmt::format("  {:<52}{}\n", left, verb.doc)
                            : fmt::format("  {}\n  {:<52}{}\n", left, "", verb.doc);
  }
  out +=
      "\n`lantern <verb> --help` lists the flags of a verb; flags are written -flag or --flag and\n"
      "may stand anywhere behind the verb. `lantern help cfg` lists the sections of a cfg,\n"
      "`lantern help compatibility` what differs from Darknet.\n"
      "Exit codes: 0 done, 1 failed, 2 usage, 3 bad input, 4 resources, 130 interrupted.\n";
  return out;
}

std::span<const Flag> help_flags() {
  static constexpr std::array kFlags{
      Flag{.name = "markdown", .doc = "help cfg, compatibility or SECTION as a Markdown document"}};
  return kFlags;
}

int run_help(const Arguments& arguments, Terminal& terminal) {
  return print_help(arguments.positionals, arguments.has("markdown"), terminal);
}

int print_help(std::span<const std::string> words, bool markdown, Terminal& terminal) {
  if (words.empty()) {
    if (markdown)
      throw Error(ErrorCode::kUsage, "",
                  "-markdown needs a topic: cfg, compatibility or a section");
    terminal.print(program_help());
    return 0;
  }
  const std::string topic(without_brackets(words.front()));
  if (topic == "cfg") {
    terminal.print(markdown ? cfg_reference() : sections_help());
    return 0;
  }
  if (topic == "compatibility") {
    terminal.print(markdown ? compatibility_page() : compatibility_text());
    return 0;
  }
  if (topic == "common") {
    const cfg::SectionInfo common = layers::common_reference();
    terminal.print(markdown ? cfg::markdown(common) : cfg::help_text(common));
    return 0;
  }
  std::string wanted = topic;
  if (words.size() > 1) wanted += " " + words[1];
  bool found = false;
  for (const Verb& verb : verbs()) {
    if (markdown) break;  // sections only
    if (verb.name != wanted && verb.family() != wanted) continue;
    terminal.print((found ? "\n" : "") + verb_help(verb));
    found = true;
  }
  if (found) return 0;
  if (const auto section = layers::find_section(topic)) {
    terminal.print(markdown ? cfg::markdown(*section) : cfg::help_text(*section));
    return 0;
  }
  std::vector<std::string_view> topics{"cfg", "common", "compatibility"};
  const std::vector<cfg::SectionInfo> sections = layers::section_reference();
  for (const cfg::SectionInfo& section : sections) topics.push_back(section.name);
  for (const Verb& verb : verbs()) topics.push_back(verb.family());
  const auto near = nearest(topic, topics);
  throw Error(ErrorCode::kUsage, "", "no help on '{}': it is neither a section nor a verb{}", topic,
              near ? fmt::format("; did you mean {}?", *near) : "");
}

int run_version(const Arguments& /*arguments*/, Terminal& terminal) {
  terminal.print(fmt::format("lantern {}\ndevice cpu, {} cores usable\nprecision fp32\n",
                             LANTERN_VERSION, device::usable_cores()));
  return 0;
}

}  // namespace lantern::cli
