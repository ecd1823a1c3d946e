#pragma once

#include <string>
#include <vector>

#include "cli/terminal.hpp"

namespace lantern::cli {

/// The images that `detector test` is given: one file, a folder, a pattern such as `img/*.jpg`, or
/// one path a line on standard input.
class ImageInput {
 public:
  /// `argument` empty: standard input. Throws kInvalidData for a folder or pattern without images.
  ImageInput(const std::string& argument, Terminal& terminal);

  /// The next paths: all of them when they are known, else as many lines as come until there are
  /// `most`. Empty at the end.
  std::vector<std::string> next(std::int64_t most);

 private:
  std::string read_line(bool& is_end);
  Terminal& terminal_;
  bool from_input_ = false;
  bool all_at_once_ = true;
  std::vector<std::string> known_;
};

}  // namespace lantern::cli
