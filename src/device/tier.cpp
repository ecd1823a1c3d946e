#include "device/tier.hpp"

#include "core/error.hpp"

namespace lantern::device {

void CopyControl::sleep_until(Clock::time_point due) const {
  while (!cancelled() && Clock::now() < due) sleep_on(cancelled_, 0, due);
}

void CopyControl::check() const {
  if (cancelled()) throw Error(ErrorCode::kDevice, "", "the copy was given up");
}

void CopyControl::cancel() {
  cancelled_.store(1, std::memory_order_release);
  wake_all(cancelled_);
}

void Pace::begin() {
  if (rate_ <= 0) return;
  // A copy that follows the one before at once starts when that one was over by the link's time:
  // what the sleep took too long does not add up.
  constexpr std::chrono::milliseconds kAtOnce{1};
  const Clock::time_point now = Clock::now();
  start_ = now - busy_until_ < kAtOnce ? busy_until_ : now;
}

void Pace::wait(Bytes moved, bool last, const CopyControl& control) {
  if (rate_ <= 0) return;
  const std::chrono::duration<double> taken(latency_ + static_cast<double>(moved) / rate_);
  const Clock::time_point due = start_ + std::chrono::duration_cast<Clock::duration>(taken);
  busy_until_ = due;
  // A sleep shorter than a timer's slack is left to the next piece.
  constexpr std::chrono::microseconds kSlack{100};
  if (last || due - Clock::now() > kSlack) control.sleep_until(due);
}

}  // namespace lantern::device
