#include "data/pipeline.hpp"

#include <algorithm>
#include <chrono>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

#include "core/error.hpp"

namespace lantern::data {

void check_memory(Bytes needed, Bytes left, std::string_view mend) {
  if (left == 0 || needed <= left) return;
  throw Error(ErrorCode::kResource, "",
              "the pictures held ready for the network need {}, {} are left beside it: {}",
              format_bytes(needed), format_bytes(left), mend);
}

namespace {

/// The threads that compute come first; a refusal is no error.
void lower_priority() {
#ifdef __linux__
  const sched_param parameters{};
  pthread_setschedparam(pthread_self(), SCHED_BATCH, &parameters);
  constexpr int kNice = 5;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
#endif
}

}  // namespace

BatchPipeline::BatchPipeline(int threads, int queue, std::int64_t first_step, Work work)
    : queue_(std::max(queue, 1)),
      work_(std::move(work)),
      opened_(first_step),
      released_(first_step),
      unfinished_(static_cast<std::size_t>(queue_), 0) {
  const int count = std::max(threads, 1);
  threads_.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    threads_.emplace_back([this, i] { loop(i); });
  }
}

BatchPipeline::~BatchPipeline() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  may_work_.notify_all();
  threads_.clear();  // joins
}

void BatchPipeline::loop(int thread) {
  lower_priority();
  std::unique_lock lock(mutex_);
  for (;;) {
    may_work_.wait(lock, [this] {
      const bool has_task = next_task_ < tasks_;
      return stop_ || has_task || (opened_ < end_ && opened_ - released_ < queue_);
    });
    if (stop_) return;
    try {
      if (next_task_ >= tasks_) {
        const std::int64_t tasks = work_.open(opened_);
        if (tasks < 0) {
          end_ = opened_;
        } else {
          current_ = opened_++;
          next_task_ = 0;
          tasks_ = tasks;
          unfinished_[place(current_)] = tasks;
        }
        may_read_.notify_all();
        may_work_.notify_all();
        continue;
      }
      const std::int64_t step = current_;
      const std::int64_t task = next_task_++;
      lock.unlock();
      work_.run(step, task, thread);
      lock.lock();
      if (--unfinished_[place(step)] == 0) may_read_.notify_all();
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      if (!failure_) failure_ = std::current_exception();
      stop_ = true;
      may_read_.notify_all();
      may_work_.notify_all();
      return;
    }
  }
}

bool BatchPipeline::wait(std::int64_t step) {
  std::unique_lock lock(mutex_);
  const auto is_ready = [&] { return step < opened_ && unfinished_[place(step)] == 0; };
  const auto start = std::chrono::steady_clock::now();
  may_read_.wait(lock, [&] { return failure_ || step >= end_ || is_ready(); });
  seconds_waited_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (step >= end_) return false;
  // What was made before the failure is still handed out.
  if (!is_ready()) std::rethrow_exception(failure_);
  return true;
}

void BatchPipeline::release(std::int64_t step) {
  {
    const std::lock_guard lock(mutex_);
    released_ = std::max(released_, step + 1);
  }
  may_work_.notify_all();
}

double BatchPipeline::seconds_waited() const {
  const std::lock_guard lock(mutex_);
  return seconds_waited_;
}

}  // namespace lantern::data
