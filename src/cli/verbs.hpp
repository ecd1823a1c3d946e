#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.hpp"
#include "cli/terminal.hpp"

namespace lantern::cli {

/// One thing the program does, e.g. "detector map". Returns the exit code.
using RunVerb = int (*)(const Arguments& arguments, Terminal& terminal);

struct Verb {
  std::string_view name;    ///< "detector map": family and subverb; or one word
  std::string_view usage;   ///< "<data> <cfg> <weights>"
  int least = 0, most = 0;  ///< positionals after the name
  std::string_view doc;
  std::string_view example;
  std::span<const Flag> flags;
  RunVerb run = nullptr;

  std::string_view family() const;
  std::string_view subverb() const;
};

std::span<const Verb> verbs();
/// Flags that every verb has.
std::span<const Flag> common_flags();

std::string verb_help(const Verb& verb);
std::string program_help();

/// Parses the command line (without the program's name), runs the verb and returns the exit code.
/// Errors are thrown.
int run_command(std::vector<std::string> args, Terminal& terminal);

// The verbs themselves, one file each; flags tables beside them.
int run_help(const Arguments& arguments, Terminal& terminal);
/// Help on nothing, `cfg`, `common`, `compatibility`, a section or a verb of one or two words;
/// `markdown` is not for verbs.
int print_help(std::span<const std::string> topics, bool markdown, Terminal& terminal);
int run_version(const Arguments& arguments, Terminal& terminal);
int run_export_onnx(const Arguments& arguments, Terminal& terminal);
int run_dump(const Arguments& arguments, Terminal& terminal);
int run_plan(const Arguments& arguments, Terminal& terminal);
int run_bench(const Arguments& arguments, Terminal& terminal);
int run_models(const Arguments& arguments, Terminal& terminal);
int run_partial(const Arguments& arguments, Terminal& terminal);
int run_ops(const Arguments& arguments, Terminal& terminal);
int run_average(const Arguments& arguments, Terminal& terminal);
int run_denormalize(const Arguments& arguments, Terminal& terminal);
int run_speed(const Arguments& arguments, Terminal& terminal);
std::span<const Flag> bench_flags();
std::span<const Flag> dump_flags();
std::span<const Flag> export_flags();
std::span<const Flag> plan_flags();
std::span<const Flag> help_flags();
std::span<const Flag> speed_flags();

}  // namespace lantern::cli
