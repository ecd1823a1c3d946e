#include "api/c_errors.hpp"

#include <cstdio>
#include <cstring>

#include "api/guard.hpp"
#include "core/error.hpp"
#include "lantern/lantern.h"
#include "lantern/net.hpp"

namespace lantern::api {

namespace {

struct LastError {
  lantern_error_code code = LANTERN_OK;
  char text[2048] = "";  // no allocation where memory may be what is missing
};

// Like errno: what C has in place of an exception. Each thread has its own.
LastError& last_error() {
  thread_local LastError error;
  return error;
}

lantern_error_code code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return LANTERN_USAGE;
    case ErrorCode::kInvalidConfig:
      return LANTERN_INVALID_CONFIG;
    case ErrorCode::kInvalidData:
      return LANTERN_INVALID_DATA;
    case ErrorCode::kResource:
      return LANTERN_RESOURCE;
    case ErrorCode::kDevice:
      return LANTERN_DEVICE;
    case ErrorCode::kFailed:
      return LANTERN_FAILED;
    case ErrorCode::kInternal:
      return LANTERN_INTERNAL;
    case ErrorCode::kInterrupted:
      return LANTERN_INTERRUPTED;
  }
  return LANTERN_INTERNAL;
}

void keep(lantern_error_code code, const char* text) noexcept {
  LastError& error = last_error();
  error.code = code;
  std::snprintf(error.text, sizeof(error.text), "%s", text);
}

}  // namespace

void keep_error() noexcept {
  try {
    rethrow_as_exception();
  } catch (const Exception& error) {
    keep(code_of(error.code()), error.what());
  } catch (...) {  // not even an Exception could be made
    keep(LANTERN_RESOURCE, "out of memory");
  }
}

void require(const void* pointer, const char* argument) {
  if (pointer == nullptr) throw Error(ErrorCode::kUsage, argument, "is NULL");
}

}  // namespace lantern::api

extern "C" {

const char* lantern_version(void) { return lantern::version(); }
const char* lantern_last_error(void) { return lantern::api::last_error().text; }
lantern_error_code lantern_last_error_code(void) { return lantern::api::last_error().code; }
}
