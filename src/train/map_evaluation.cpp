#include "train/map_evaluation.hpp"

#include <algorithm>
#include <utility>

#include "core/log.hpp"

namespace lantern::train {

MapEvaluation::MapEvaluation(const RunSetup& run, const TrainSettings& settings,
                             std::filesystem::path list, bool letter_box)
    : options_{.list = std::move(list),
               .threads = std::max(1, settings.threads),
               .letter_box = letter_box,
               .exif = run.network.net.exif == layers::Exif::kApply,
               .conf_thresh = settings.thresh,
               .iou_thresh = settings.iou_thresh},
      names_(run.names),
      every_(std::max<std::int64_t>(
          100, static_cast<std::int64_t>(settings.map_epochs * run.iterations_per_epoch()))),
      first_(run.network.net.burn_in) {}

std::int64_t MapEvaluation::next_after(std::int64_t last) const {
  return std::max(last + every_, first_);
}

Measured MapEvaluation::measure(exec::Model& model, Console& console) {
  const EvaluateResult result = evaluate_detector(
      model, options_, names_, [&](std::int64_t done, std::int64_t total, double rate) {
        console.progress("mAP", done, total, rate, "images/s");
      });
  if (!result.bad_images.empty() && !std::exchange(told_bad_images_, true)) {
    log::warning("{}: {} of {} images cannot be used for mAP; the first: {}",
                 options_.list.string(), result.bad_images.size(),
                 result.images + static_cast<std::int64_t>(result.bad_images.size()),
                 result.bad_images.front().reason);
  }
  if (result.map.truths == 0 && !std::exchange(told_no_truth_, true)) {
    log::warning("{}: there are 0 truth boxes in the validation set: its mAP says nothing",
                 options_.list.string());
  }
  return {.percents = {{fmt::format("mAP@{:.2f}", options_.iou_thresh), result.map.map}},
          .numbers = {{"map", result.map.map}, {"iou_thresh", options_.iou_thresh}}};
}

std::string MapEvaluation::line(const Measured& measured, double best, std::int64_t next) const {
  return fmt::format(
      "\n (next mAP calculation at {} iterations) \n Last accuracy mAP@{:.2f} = {:.2f} %, best = "
      "{:.2f} % ",
      next, options_.iou_thresh, 100 * measured.percents.front().second, 100 * best);
}

}  // namespace lantern::train
