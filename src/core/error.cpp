#include "core/error.hpp"

#include <utility>

#include "core/text.hpp"

namespace lantern {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return 2;
    case ErrorCode::kInvalidConfig:
    case ErrorCode::kInvalidData:
      return 3;
    case ErrorCode::kResource:
    case ErrorCode::kDevice:
      return 4;
    case ErrorCode::kInterrupted:
      return 130;
    case ErrorCode::kFailed:
    case ErrorCode::kInternal:
      return 1;
  }
  return 1;
}

Exception::Exception(ErrorCode code, std::string where, std::string message)
    : std::runtime_error(readable(where.empty() ? message : where + ": " + message)),
      code_(code),
      where_(std::move(where)),
      message_(std::move(message)) {}

Exception::~Exception() = default;  // the one place of its type information

void assertion_failed(std::string_view condition, std::string_view what, std::source_location at) {
  throw Error(ErrorCode::kInternal, fmt::format("{}:{}", at.file_name(), at.line()),
              "internal error: {} ({} does not hold)", what, condition);
}

}  // namespace lantern
