#pragma once

#include <fmt/format.h>

#include <source_location>
#include <string>
#include <string_view>
#include <utility>

#include "lantern/error.hpp"

namespace lantern {

/// Process exit code of a category.
int exit_code(ErrorCode code);

/// The exception that crosses module borders: the public one, made with a checked format string.
/// `where` is `file:line`, a path or a tensor name (may be empty); the message says in plain words
/// what is wrong and how to mend it.
class Error : public Exception {
 public:
  template <typename... Args>
  Error(ErrorCode code, std::string where, fmt::format_string<Args...> format, Args&&... args)
      : Exception(code, std::move(where), fmt::format(format, std::forward<Args>(args)...)) {}
};

[[noreturn]] void assertion_failed(std::string_view condition, std::string_view what,
                                   std::source_location at = std::source_location::current());

}  // namespace lantern

/// For our own bugs only; never reachable from user input.
#define LANTERN_ASSERT(condition, what) \
  ((condition) ? static_cast<void>(0) : ::lantern::assertion_failed(#condition, what))
