#pragma once

#include <string>

#include "core/types.hpp"

namespace lantern {

/// A pair of copy engines, one each way; a copy of s bytes takes latency + s / bandwidth.
struct LinkSpec {
  double out_bytes_per_second = 0;  ///< 0: there is no such link
  double in_bytes_per_second = 0;
  double latency_seconds = 0;

  bool exists() const { return out_bytes_per_second > 0 && in_bytes_per_second > 0; }
  double out_seconds(Bytes bytes) const {
    return latency_seconds + static_cast<double>(bytes) / out_bytes_per_second;
  }
  double in_seconds(Bytes bytes) const {
    return latency_seconds + static_cast<double>(bytes) / in_bytes_per_second;
  }
};

/// What the planner knows of a machine (memory.md, section 1): sizes and speeds, no names of
/// kernels.
struct DeviceSpec {
  std::string name;
  Bytes memory = 0;       ///< of the compute tier: video memory, or RAM on a CPU
  Bytes host_memory = 0;  ///< of the tier behind the host link; 0 on a CPU, where RAM is tier 0
  double flops_per_second = 0;  ///< peak; convolutions reach a part of it by their class
  double memory_bytes_per_second = 0;
  double op_seconds = 0;  ///< fixed cost of starting one op
  LinkSpec host;          ///< device <-> host RAM
  LinkSpec disk;          ///< to a file, from wherever the tier above it is
  double contention = 1;  ///< factor on compute time while a copy runs
};

}  // namespace lantern
