#include "device/peak_memory.hpp"

#include <fstream>

#include "device/machine.hpp"

namespace lantern::device {

bool restart_peak_memory() {
  return_free_memory();
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;  // proc(5): resets VmHWM
  return file.good();
}

}  // namespace lantern::device
