#pragma once

#include <fmt/format.h>

#include <string_view>

namespace lantern::log {

enum class Level { kDebug, kInfo, kWarning, kError };

/// Lines below `level` are dropped. Set once by `main`; the default is kInfo.
void set_level(Level level);
/// One line for people on standard error (spdlog, thread safe).
void write(Level level, std::string_view line);

template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lantern::log
