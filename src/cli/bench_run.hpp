#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/terminal.hpp"
#include "core/types.hpp"
#include "layers/network.hpp"

namespace lantern::cli {

/// One network at one size with one number of images.
struct BenchCase {
  layers::Network network;
  std::int64_t images = 1;  ///< of a forward pass, or of a mini-batch
  bool is_training = false;
  int threads = 1;
  std::string weights;  ///< a file; empty: random values
};

/// Time of one op kind with one kernel in one layer, per iteration.
struct OpRow {
  int layer = -1;  ///< -1: none, the update
  std::string section, op, kernel;
  double seconds = 0, flops = 0;
  double gflops() const { return seconds > 0 ? flops / seconds * 1e-9 : 0; }
};

struct BenchResult {
  int width = 0, height = 0;  ///< of the pictures; 0: vectors
  std::int64_t images = 0;
  std::vector<double> seconds;  ///< of every timed iteration, in order
  double flops = 0;             ///< of an iteration
  Bytes peak = 0;               ///< of the whole process until the last timed iteration
  Bytes planned = 0;            ///< arena
  std::vector<OpRow> ops;       ///< measured in iterations of their own; empty unless asked for

  double median() const { return quantile(0.5); }
  /// Of `seconds`, between neighbours by proportion; 0.5 is the median.
  double quantile(double part) const;
  double images_per_second() const { return static_cast<double>(images) / median(); }
  double gflops() const { return flops / median() * 1e-9; }
};

inline constexpr int kWarmUp = 2;  ///< iterations before those that are timed

/// Times `iterations` after kWarmUp, with synthetic pictures and truth. Throws kResource
/// before anything is touched that does not fit, kInterrupted after Ctrl-C.
BenchResult run_case(const BenchCase& what, std::int64_t iterations, bool profiled,
                     Terminal& terminal);

}  // namespace lantern::cli
