#include "core/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "core/text.hpp"

namespace lantern::log {

namespace {
spdlog::logger& logger() {
  // spdlog owns the sink; function-local so that no order of initialisation matters.
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("lantern",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}
}  // namespace

void set_level(Level level) { logger().set_level(to_spdlog(level)); }

void write(Level level, std::string_view line) {
  if (level == Level::kWarning) {
    logger().log(to_spdlog(level), "warning: {}", readable(line));
  } else {
    logger().log(to_spdlog(level), "{}", readable(line));
  }
}

}  // namespace lantern::log
