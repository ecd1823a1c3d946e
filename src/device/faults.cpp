#include "device/faults.hpp"

#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace lantern::device {

namespace {
Clock::time_point in_seconds(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}
}  // namespace

std::string_view to_string(Direction direction) {
  return direction == Direction::kOut ? "out" : "in";
}

FaultyTier::FaultyTier(std::shared_ptr<Tier> behind, std::vector<Fault> faults,
                       std::function<double(Direction, std::int64_t)> delay)
    : behind_(std::move(behind)), faults_(std::move(faults)), delay_(std::move(delay)) {}

void FaultyTier::befall(Direction direction, std::int64_t copy, CopyControl& control) const {
  if (delay_) control.sleep_until(in_seconds(delay_(direction, copy)));
  for (const Fault& fault : faults_) {
    if (fault.direction != direction || fault.copy != copy) continue;
    switch (fault.kind) {
      case Fault::Kind::kFail:
        throw Error(ErrorCode::kDevice, name(), "the copy failed: {}", std::strerror(EIO));
      case Fault::Kind::kLate:
        control.sleep_until(in_seconds(fault.seconds));
        break;
      case Fault::Kind::kNever:
        while (!control.cancelled()) control.sleep_until(in_seconds(3600));
        break;
    }
  }
  control.check();
}

void FaultyTier::write(Bytes offset, std::span<const std::byte> from, CopyControl& control) {
  befall(Direction::kOut, ++outs_, control);
  behind_->write(offset, from, control);
}

void FaultyTier::read(Bytes offset, std::span<std::byte> to, CopyControl& control) {
  befall(Direction::kIn, ++ins_, control);
  behind_->read(offset, to, control);
}

}  // namespace lantern::device
