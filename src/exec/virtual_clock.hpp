#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/device_spec.hpp"
#include "plan/program.hpp"

namespace lantern::exec {

/// Time by the cost model (memory.md, section 1): one compute stream and two copy engines, each of
/// which makes its copies in order.
class VirtualClock {
 public:
  /// Room for so many copies of a program each way.
  VirtualClock(DeviceSpec spec, std::size_t outs, std::size_t ins) : spec_(std::move(spec)) {
    out_done_.reserve(outs);
    in_done_.reserve(ins);
  }

  /// A program starts at time 0.
  void begin() {
    epoch_ += time_;
    time_ = out_free_ = in_free_ = 0;
    out_done_.clear();
    in_done_.clear();
  }
  /// `seconds`: what the op takes for the run's images.
  void run(double seconds) {
    const bool copying = out_free_ > time_ || in_free_ > time_;
    time_ += (spec_.op_seconds + seconds) * (copying ? spec_.contention : 1.0);
  }
  /// Start a copy; return when it starts and ends.
  std::pair<double, double> out(plan::Tier tier, Bytes bytes) {
    const double begin = std::max(time_, out_free_);
    out_done_.push_back(out_free_ = begin + link(tier).out_seconds(bytes));
    return {begin, out_free_};
  }
  std::pair<double, double> in(plan::Tier tier, Bytes bytes) {
    const double begin = std::max(time_, in_free_);
    in_done_.push_back(in_free_ = begin + link(tier).in_seconds(bytes));
    return {begin, in_free_};
  }
  void wait_out(std::uint32_t count) {
    if (count > 0) time_ = std::max(time_, out_done_[count - 1]);
  }
  void wait_in(std::uint32_t count) {
    if (count > 0) time_ = std::max(time_, in_done_[count - 1]);
  }
  /// Of the program under way, so far.
  double seconds() const { return time_; }
  /// Of all programs before it.
  double epoch() const { return epoch_; }

 private:
  const LinkSpec& link(plan::Tier tier) const {
    return tier == plan::Tier::kHost ? spec_.host : spec_.disk;
  }

  DeviceSpec spec_;
  double epoch_ = 0, time_ = 0, out_free_ = 0, in_free_ = 0;
  std::vector<double> out_done_, in_done_;
};

}  // namespace lantern::exec
