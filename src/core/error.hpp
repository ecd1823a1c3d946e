#pragma once

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lantern {

/// Category of a failure; the command line maps it to an exit code.
enum class ErrorCode {
  kUsage,          ///< wrong verb, flag or value: exit 2
  kInvalidConfig,  ///< cfg or .data file: exit 3
  kInvalidData,    ///< names, lists, labels, images, weights: exit 3
  kResource,       ///< memory, disk, unwritable output folder: exit 4
  kDevice,         ///< device missing or failing: exit 4
  kFailed,         ///< the run itself failed (loss not finite, a check that did not hold): exit 1
  kInternal,       ///< our own fault: exit 1
  kInterrupted,    ///< Ctrl-C after the checkpoint: exit 130
};

/// Process exit code of a category.
int exit_code(ErrorCode code);

/// The one exception type that crosses module borders. `where` is `file:line`, a path or a tensor
/// name (may be empty); the message says in plain words what is wrong and how to mend it.
class Error : public std::runtime_error {
 public:
  template <typename... Args>
  Error(ErrorCode code, std::string where, fmt::format_string<Args...> format, Args&&... args)
      : Error(code, std::move(where), std::string(fmt::format(format, std::forward<Args>(args)...)),
              Preformatted{}) {}

  ErrorCode code() const { return code_; }
  const std::string& where() const { return where_; }
  const std::string& message() const { return message_; }

 private:
  struct Preformatted {};
  Error(ErrorCode code, std::string where, std::string message, Preformatted);
  ErrorCode code_;
  std::string where_;
  std::string message_;
};

[[noreturn]] void assertion_failed(std::string_view condition, std::string_view what,
                                   std::source_location at = std::source_location::current());

}  // namespace lantern

/// For our own bugs only; never reachable from user input.
#define LANTERN_ASSERT(condition, what) \
  ((condition) ? static_cast<void>(0) : ::lantern::assertion_failed(#condition, what))
