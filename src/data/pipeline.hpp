#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "core/types.hpp"

namespace lantern::data {

/// Throws kResource when the pictures of a queue need more than `left` (0: any amount will do).
void check_memory(Bytes needed, Bytes left, std::string_view mend);

/// Internal to src/data: threads that work ahead of one reader. Work comes in steps, each of
/// several independent tasks; at most `queue` steps are open (being made, ready, or in the reader's
/// hands), the threads sleep beyond that.
class BatchPipeline {
 public:
  struct Work {
    /// Called once per step, in order, never two at a time: makes the step's place ready and
    /// returns its number of tasks; negative: there is no such step.
    std::function<std::int64_t(std::int64_t step)> open;
    /// Called from any thread; `thread` counts from 0.
    std::function<void(std::int64_t step, std::int64_t task, int thread)> run;
  };
  BatchPipeline(int threads, int queue, std::int64_t first_step, Work work);
  ~BatchPipeline();
  BatchPipeline(const BatchPipeline&) = delete;
  BatchPipeline& operator=(const BatchPipeline&) = delete;

  /// Blocks until the step is ready; false when there is none. Throws what a task threw.
  bool wait(std::int64_t step);
  /// Gives the place of a step back; steps are released in order.
  void release(std::int64_t step);
  double seconds_waited() const;

 private:
  void loop(int thread);
  std::size_t place(std::int64_t step) const { return static_cast<std::size_t>(step % queue_); }

  const std::int64_t queue_;
  const Work work_;
  mutable std::mutex mutex_;
  std::condition_variable may_work_, may_read_;
  std::int64_t opened_;           ///< next step to open
  std::int64_t released_;         ///< first step not yet released
  std::int64_t end_ = INT64_MAX;  ///< first step that does not exist
  std::int64_t current_ = -1;     ///< step whose tasks are being handed out
  std::int64_t next_task_ = 0, tasks_ = 0;
  std::vector<std::int64_t> unfinished_;  ///< tasks of the step at each place
  std::exception_ptr failure_;
  bool stop_ = false;
  double seconds_waited_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace lantern::data
