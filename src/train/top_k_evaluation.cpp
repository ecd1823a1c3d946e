#include "train/top_k_evaluation.hpp"

#include <algorithm>
#include <utility>

#include "core/log.hpp"
#include "train/evaluate_classifier.hpp"

namespace lantern::train {

TopKEvaluation::TopKEvaluation(data::ClassSet set, int top, std::int64_t burn_in,
                               double iterations_per_epoch, int threads)
    : set_(std::move(set)),
      top_(std::min(top, static_cast<int>(set_.counts.size()))),
      burn_in_(burn_in),
      iterations_per_epoch_(iterations_per_epoch),
      threads_(threads) {}

// reference/training.md 13.6: every two epochs, not before burn_in and 100 iterations.
std::int64_t TopKEvaluation::next_after(std::int64_t last) const {
  const auto two_epochs =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(2 * iterations_per_epoch_));
  return std::max({last + two_epochs, burn_in_, std::int64_t{100}});
}

Measured TopKEvaluation::measure(exec::Model& model, Console& console) {
  const ClassEvaluationResult result =
      evaluate_classifier(model, set_,
                          {.top = top_,
                           .threads = threads_,
                           .progress = [&](std::int64_t done, std::int64_t total, double rate) {
                             console.progress("top-k", done, total, rate, "images/s");
                           }});
  if (!result.bad_images.empty() && !std::exchange(told_bad_images_, true)) {
    log::warning("{}: {} of {} images cannot be used for -topk; the first: {}", set_.list.string(),
                 result.bad_images.size(), set_.images.size(), result.bad_images.front().reason);
  }
  const double first = result.accuracy.top1(), among = result.accuracy.topk();
  Measured measured{.percents = {{"top1", first}}, .numbers = {{"top1", first}}};
  if (top_ > 1) {
    measured.percents.emplace_back(fmt::format("top{}", top_), among);
    measured.numbers.emplace_back(fmt::format("top{}", top_), among);
  }
  return measured;
}

std::string TopKEvaluation::line(const Measured& measured, double best, std::int64_t next) const {
  std::string text =
      fmt::format("\n (next top-k calculation at {} iterations) \n Last accuracy", next);
  for (const auto& [name, value] : measured.percents) {
    text += fmt::format(" {} = {:.2f} %,", name, 100 * value);
  }
  return text + fmt::format(" best top1 = {:.2f} % ", 100 * best);
}

}  // namespace lantern::train
