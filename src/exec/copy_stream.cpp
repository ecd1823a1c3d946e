#include "exec/copy_stream.hpp"

#include <chrono>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "device/pin.hpp"

namespace lantern::exec {

namespace {

using device::Clock;
using device::Direction;

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  std::uint64_t hash = bytes.size();
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 29;
  }
  for (; at < bytes.size(); ++at) hash = (hash ^ static_cast<std::uint64_t>(bytes[at])) * kFactor;
  return hash;
}

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

void make_copy(CopyJobs& jobs, const CopyJob& job, Direction direction,
               device::CopyControl& control) {
  const std::span<std::byte> bytes(job.data, static_cast<std::size_t>(job.bytes));
  const bool compared = !jobs.hashes.empty();
  if (direction == Direction::kOut) {
    if (compared) jobs.hashes[job.slot] = hash_of(bytes);
    job.tier->write(job.offset, bytes, control);
    if (compared && hash_of(bytes) != jobs.hashes[job.slot])
      throw Error(ErrorCode::kInternal, "", "the bytes changed while they were copied");
  } else {
    job.tier->read(job.offset, bytes, control);
    if (compared && hash_of(bytes) != jobs.hashes[job.slot])
      throw Error(ErrorCode::kInternal, "", "other bytes come back than went out");
  }
}

// Counters run on from program to program; `base` is their value at its start. `program`, `base`
// and what else the thread reads is written while it has nothing to do, before `started` moves.
struct CopyStream::State {
  State(Direction direction_, std::shared_ptr<CopyJobs> jobs_)
      : direction(direction_), jobs(std::move(jobs_)) {}

  Direction direction;
  std::shared_ptr<CopyJobs> jobs;
  std::size_t program = 0;
  std::uint32_t base = 0;
  std::atomic<std::uint32_t> started{0}, done{0};
  std::atomic<bool> stops{false}, failed{false};
  std::uint32_t failed_copy = 0;
  std::exception_ptr error;
  device::CopyControl control;

  std::uint32_t begun() const { return started.load(std::memory_order_relaxed); }
};

CopyStream::CopyStream(Direction direction, std::shared_ptr<CopyJobs> jobs,
                       std::span<const int> cores)
    : state_(std::make_shared<State>(direction, std::move(jobs))) {
  thread_ = std::thread([state = state_] { work(*state); });
  try {
    if (!cores.empty()) device::pin_thread(thread_.native_handle(), cores);
  } catch (...) {
    stop();
    throw;
  }
}

CopyStream::~CopyStream() { stop(); }

void CopyStream::stop() {
  constexpr double kPatience = 5;
  const bool idle = drain(kPatience);
  state_->stops.store(true, std::memory_order_release);
  state_->started.fetch_add(1, std::memory_order_release);
  device::wake_all(state_->started);
  if (idle) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void CopyStream::work(State& state) {
  for (std::uint32_t next = 0;;) {
    while (state.started.load(std::memory_order_acquire) == next)
      device::sleep_on(state.started, next);
    if (state.stops.load(std::memory_order_acquire)) return;
    const std::uint32_t copy = next - state.base;
    if (!state.failed.load(std::memory_order_relaxed) && !state.control.cancelled()) {
      CopyJobs& jobs = *state.jobs;
      const Clock::time_point begin = Clock::now();
      try {
        make_copy(jobs, jobs.of(state.direction, state.program)[copy], state.direction,
                  state.control);
      } catch (...) {
        state.failed_copy = copy;
        state.error = std::current_exception();
        state.failed.store(true, std::memory_order_release);
      }
      if (jobs.trace) {
        jobs.trace->add(
            state.direction == Direction::kOut ? Trace::kOut : Trace::kIn,
            {.kind = TraceEvent::Kind::kCopy,
             .program = static_cast<std::uint8_t>(state.program),
             .source = jobs.trace_source,
             .index = copy,
             .begin_ns = std::chrono::nanoseconds(begin - jobs.trace_start).count(),
             .end_ns = std::chrono::nanoseconds(Clock::now() - jobs.trace_start).count()});
      }
    }
    ++next;
    state.done.store(next, std::memory_order_release);
    device::wake_all(state.done);
  }
}

bool CopyStream::begin(std::size_t program) {
  if (state_->done.load(std::memory_order_acquire) != state_->begun()) return false;
  state_->program = program;
  state_->base = state_->begun();
  state_->failed.store(false, std::memory_order_relaxed);
  state_->error = nullptr;
  state_->control.reset();
  return true;
}

void CopyStream::start(std::uint32_t count) {
  state_->started.store(state_->base + count, std::memory_order_release);
  device::wake_all(state_->started);
}

std::uint32_t CopyStream::started() const { return state_->begun() - state_->base; }
bool CopyStream::failed() const { return state_->failed.load(std::memory_order_acquire); }
std::exception_ptr CopyStream::error() const { return state_->error; }

std::uint32_t CopyStream::current() const {
  return failed() ? state_->failed_copy
                  : state_->done.load(std::memory_order_acquire) - state_->base;
}

CopyStream::Outcome CopyStream::wait(std::uint32_t count, double watchdog_seconds) {
  Bytes moved = -1;
  std::uint32_t seen = 0;
  Clock::time_point due{};
  for (;;) {
    if (failed()) return Outcome::kFailed;
    const std::uint32_t done = state_->done.load(std::memory_order_acquire);
    if (done - state_->base >= count) return Outcome::kDone;
    const Bytes total = state_->control.total();
    if (moved != total || seen != done) {
      moved = total;
      seen = done;
      due = after(watchdog_seconds);
    } else if (Clock::now() >= due) {
      return Outcome::kStuck;
    }
    device::sleep_on(state_->done, done, due);
  }
}

bool CopyStream::drain(double seconds) {
  state_->control.cancel();
  const Clock::time_point due = after(seconds);
  for (;;) {
    const std::uint32_t done = state_->done.load(std::memory_order_acquire);
    if (done == state_->begun()) return true;
    if (Clock::now() >= due) return false;
    device::sleep_on(state_->done, done, due);
  }
}

}  // namespace lantern::exec
