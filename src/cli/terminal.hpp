#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "train/train_settings.hpp"

namespace lantern::cli {

/// Where the program speaks: results on standard output, everything else on standard error. Looks
/// up what is a terminal, and NO_COLOR, once.
class Terminal final : public train::Console {
 public:
  Terminal();
  ~Terminal() override;
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// Text of standard output goes to standard error from now on: a script reads the JSON there.
  void reserve_output();
  void set_quiet(bool quiet) { quiet_ = quiet; }

  void line(std::string_view text) override;
  void notice(std::string_view text) override;
  void progress(std::string_view task, std::int64_t done, std::int64_t total, double per_second,
                std::string_view unit) override;
  bool interrupted() const override;

  /// Results as they are, nothing added. Throws kResource when standard output cannot be written.
  void print(std::string_view text);
  /// A document for a script: to standard output, or whole into `file` when that is not empty.
  void print_json(std::string_view document, const std::string& file);
  /// `lantern: ...`, also with `-quiet`.
  void error(std::string_view text);
  void warning(std::string_view text);
  /// A question for somebody at a terminal; nothing otherwise.
  void prompt(std::string_view text);

 private:
  void clear_progress();
  void write_error(std::string_view text);

  bool input_is_terminal_, error_is_terminal_, color_;
  bool quiet_ = false, output_reserved_ = false, progress_shown_ = false;
  std::string task_;
  std::int64_t task_first_ = 0;
  std::chrono::steady_clock::time_point task_start_, last_drawn_;
};

/// Ctrl-C is noted from now on instead of ending the process; the second one ends it.
void watch_interrupts();

}  // namespace lantern::cli
