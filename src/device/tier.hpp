#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/device_spec.hpp"
#include "core/types.hpp"
#include "device/futex.hpp"

namespace lantern::device {

/// What the thread that makes a copy and the one that waits for it tell each other.
class CopyControl {
 public:
  /// By the copier, so that a long copy is seen to get on.
  void moved(Bytes bytes) { moved_.fetch_add(bytes, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire) != 0; }
  /// Sleeps until `due`, or until the copy is given up.
  void sleep_until(Clock::time_point due) const;
  /// Throws when the copy is to be given up.
  void check() const;

  /// By the one who waits.
  Bytes total() const { return moved_.load(std::memory_order_relaxed); }
  void cancel();
  void reset() { cancelled_.store(0, std::memory_order_release); }

 private:
  std::atomic<Bytes> moved_{0};
  std::atomic<std::uint32_t> cancelled_{0};
};

/// Bytes outside the arena: where evicted tensors wait. One thread may write while another reads,
/// elsewhere; nothing is allocated by a copy that succeeds.
class Tier {
 public:
  Tier() = default;
  Tier(const Tier&) = delete;
  Tier& operator=(const Tier&) = delete;
  virtual ~Tier() = default;

  virtual Bytes bytes() const = 0;
  /// For messages: "host memory", "the file in /tmp".
  virtual std::string name() const = 0;
  /// Return when the bytes are there. An Error of kResource or kDevice when they cannot be moved.
  virtual void write(Bytes offset, std::span<const std::byte> from, CopyControl& control) = 0;
  virtual void read(Bytes offset, std::span<std::byte> to, CopyControl& control) = 0;

  void write(Bytes offset, std::span<const std::byte> from) {
    CopyControl control;
    write(offset, from, control);
  }
  void read(Bytes offset, std::span<std::byte> to) {
    CopyControl control;
    read(offset, to, control);
  }
};

/// Slows the copies of one direction down to those of a link: each takes latency + bytes / rate.
class Pace {
 public:
  /// A rate of 0 bytes per second slows nothing down.
  Pace(double bytes_per_second, double latency_seconds)
      : rate_(bytes_per_second), latency_(latency_seconds) {}
  static Pace out(const LinkSpec& link) {
    return {link.out_bytes_per_second, link.latency_seconds};
  }
  static Pace in(const LinkSpec& link) { return {link.in_bytes_per_second, link.latency_seconds}; }

  /// A copy starts.
  void begin();
  /// Sleeps until so many bytes of it may have passed; `last` when these are all.
  void wait(Bytes moved, bool last, const CopyControl& control);

 private:
  double rate_, latency_;
  Clock::time_point start_{}, busy_until_{};
};

}  // namespace lantern::device
