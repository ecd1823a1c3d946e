#pragma once

#include "lantern/error.hpp"

namespace lantern::api {

/// Inside a catch block: throws the caught exception again as the one type of the interface.
[[noreturn]] void rethrow_as_exception();

/// Runs the body of a public function: whatever it throws leaves as Exception.
template <typename Body>
auto guarded(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    rethrow_as_exception();
  }
}

/// The calling thread's OpenMP team size is its own again afterwards: the executor sets it.
class TeamSize {
 public:
  TeamSize();
  ~TeamSize();
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;

 private:
  int before_;
};

}  // namespace lantern::api
