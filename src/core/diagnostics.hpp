#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"

namespace lantern {

/// Collects everything wrong with one input so that a user sees all of it at once.
class Diagnostics {
 public:
  enum class Severity { kWarning, kError };
  struct Entry {
    Severity severity;
    std::string where;  ///< "net.cfg:112:1", a path, or empty
    std::string message;
    /// "net.cfg:112:1: error: [maxpool] size is 0, want >= 1"
    std::string to_string() const;
  };

  template <typename... Args>
  void warning(std::string where, fmt::format_string<Args...> format, Args&&... args) {
    entries_.push_back(
        {Severity::kWarning, std::move(where), fmt::format(format, std::forward<Args>(args)...)});
  }
  template <typename... Args>
  void error(std::string where, fmt::format_string<Args...> format, Args&&... args) {
    entries_.push_back(
        {Severity::kError, std::move(where), fmt::format(format, std::forward<Args>(args)...)});
  }

  const std::vector<Entry>& entries() const { return entries_; }
  bool has_errors() const;
  /// Throws one Error that holds every error line (first line the first error); does nothing
  /// without errors.
  void throw_if_errors(ErrorCode code) const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace lantern
