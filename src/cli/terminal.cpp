#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"

namespace lantern::cli {

namespace {

volatile std::sig_atomic_t interrupts = 0;  // NOLINT: a signal handler has no other way

extern "C" void on_interrupt(int) {
  if (interrupts != 0) _exit(130);
  interrupts = 1;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // no SA_RESTART: waiting for a line of input ends too
  sigaction(SIGINT, &action, nullptr);
  // A job scheduler ends a run by SIGTERM, a closed terminal by SIGHUP; `nohup` stays as it is.
  for (const int signal : {SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) {
      sigaction(signal, &action, nullptr);
    }
  }
}

Terminal::Terminal()
    : input_is_terminal_(isatty(STDIN_FILENO) == 1),
      error_is_terminal_(isatty(STDERR_FILENO) == 1) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  color_ = error_is_terminal_ && (no_color == nullptr || *no_color == '\0') && term != nullptr &&
           std::string_view(term) != "dumb";
}

Terminal::~Terminal() { clear_progress(); }

void Terminal::reserve_output() { output_reserved_ = true; }

void Terminal::clear_progress() {
  if (!progress_shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  progress_shown_ = false;
}

void Terminal::write_error(std::string_view text) {
  clear_progress();
  std::fwrite(text.data(), 1, text.size(), stderr);
  if (!text.ends_with('\n')) std::fputc('\n', stderr);
  std::fflush(stderr);
}

void Terminal::print(std::string_view text) {
  if (output_reserved_) {
    if (!quiet_ && !text.empty()) write_error(text);
    return;
  }
  clear_progress();
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw Error(ErrorCode::kResource, "standard output", "cannot be written (disk full?)");
  }
}

void Terminal::line(std::string_view text) { print(std::string(text) + "\n"); }

void Terminal::print_json(std::string_view document, const std::string& file) {
  if (!file.empty()) {
    write_file_atomically(file, document);
    return;
  }
  const bool reserved = output_reserved_;
  output_reserved_ = false;
  print(document);
  output_reserved_ = reserved;
}

void Terminal::notice(std::string_view text) {
  // Diagnostics come this way as well: "net.cfg:3:1: warning: ..."
  const bool is_warning = text.find("warning: ") != std::string_view::npos;
  if (!quiet_ || is_warning) write_error(text);
}

void Terminal::error(std::string_view text) {
  write_error(fmt::format("{}lantern:{} {}", color_ ? "\x1b[1;31m" : "", color_ ? "\x1b[0m" : "",
                          readable(text)));
}

void Terminal::warning(std::string_view text) {
  write_error(fmt::format("{}warning:{} {}", color_ ? "\x1b[1;33m" : "", color_ ? "\x1b[0m" : "",
                          readable(text)));
}

void Terminal::prompt(std::string_view text) {
  if (!input_is_terminal_ || !error_is_terminal_) return;
  clear_progress();
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void Terminal::progress(std::string_view task, std::int64_t done, std::int64_t total,
                        double per_second, std::string_view unit) {
  if (!error_is_terminal_ || quiet_) return;
  const auto now = std::chrono::steady_clock::now();
  if (task != task_) {
    task_ = task;
    task_first_ = done;
    task_start_ = now;
  } else if (done != total && now - last_drawn_ < std::chrono::milliseconds(100)) {
    return;
  }
  last_drawn_ = now;
  std::string eta = "?";
  if (done > task_first_ && total > 0) {
    const double each = std::chrono::duration<double>(now - task_start_).count() /
                        static_cast<double>(done - task_first_);
    eta = duration_text(each * static_cast<double>(total - done));
  }
  const std::string of =
      total > 0 ? fmt::format("/{} ({:.0f} %)", total,
                              100.0 * static_cast<double>(done) / static_cast<double>(total))
                : std::string();
  const std::string text =
      fmt::format("\r\x1b[K{} {}{}  {:.1f} {}  ETA {}", task, done, of, per_second, unit, eta);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  progress_shown_ = true;
  if (done == total) {
    clear_progress();
    task_.clear();
  }
}

bool Terminal::interrupted() const { return interrupts != 0; }

}  // namespace lantern::cli
