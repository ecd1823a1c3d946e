#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.hpp"

namespace lantern::cfg {

/// One `key=value` line. `value` is trimmed at its ends and ends before an inline '#'; blanks
/// inside it stay, because file names may have them (numbers and lists drop them when they are
/// read).
struct Option {
  std::string key;
  std::string value;     ///< empty for `key=`
  int line = 0;          ///< from 1
  int column = 0;        ///< of the key, from 1
  int value_column = 0;  ///< of the first character of the value
};

struct Section {
  std::string name;  ///< without brackets
  int line = 0;
  std::vector<Option> options;  ///< in file order, duplicates included
};

struct Document {
  std::string path;
  std::vector<Section> sections;
};

/// Splits a Darknet cfg into sections and options. Never throws: everything wrong goes to
/// `diagnostics`, with `path:line:column`, and what can be read is returned.
Document parse(std::string path, std::string_view text, Diagnostics& diagnostics);

/// "net.cfg:112:1"
std::string where(std::string_view path, int line, int column = 1);

/// The text without blanks, tabs, CR and LF, as Darknet reads numbers and lists.
std::string without_blanks(std::string_view text);

}  // namespace lantern::cfg
