#include "core/diagnostics.hpp"

#include <algorithm>

namespace lantern {

std::string Diagnostics::Entry::to_string() const {
  const std::string_view kind = severity == Severity::kError ? "error" : "warning";
  return where.empty() ? fmt::format("{}: {}", kind, message)
                       : fmt::format("{}: {}: {}", where, kind, message);
}

bool Diagnostics::has_errors() const {
  return std::ranges::any_of(entries_,
                             [](const Entry& e) { return e.severity == Severity::kError; });
}

void Diagnostics::throw_if_errors(ErrorCode code) const {
  std::string where;
  std::string text;
  for (const Entry& entry : entries_) {
    if (entry.severity != Severity::kError) continue;
    if (text.empty()) {
      where = entry.where;
      text = "error: " + entry.message;
    } else {
      text += "\n" + entry.to_string();
    }
  }
  if (!text.empty()) throw Error(code, where, "{}", text);
}

}  // namespace lantern
