#pragma once

#include <exception>

#include "lantern/error.hpp"

namespace lantern::api {

/// Remembers what is being thrown as the calling thread's last error. Inside a catch block.
void keep_error() noexcept;

/// Runs the body of a C function; after a failure, which is kept, gives `failed`.
template <typename Result, typename Body>
Result c_call(Result failed, Body body) noexcept {
  try {
    return body();
  } catch (...) {
    keep_error();
    return failed;
  }
}

/// The same for a function that gives nothing.
template <typename Body>
void c_call(Body body) noexcept {
  try {
    body();
  } catch (...) {
    keep_error();
  }
}

/// Throws kUsage naming the argument when it is null.
void require(const void* pointer, const char* argument);

}  // namespace lantern::api
