#pragma once

#include <pthread.h>

#include <span>

namespace lantern::device {

/// Keeps a thread on these cores from now on. Error of kUsage when it may not run there.
void pin_thread(pthread_t thread, std::span<const int> cores);

}  // namespace lantern::device
