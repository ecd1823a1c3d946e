#include "train/evaluate_classifier.hpp"

#include <algorithm>
#include <chrono>

#include "core/error.hpp"
#include "data/loader.hpp"
#include "device/machine.hpp"
#include "train/class_inference.hpp"

namespace lantern::train {

data::EvalSpec class_eval_spec(const layers::NetSpec& net, data::EvalView view) {
  return {.net_w = net.width, .net_h = net.height, .channels = net.channels, .view = view};
}

ClassEvaluationResult evaluate_classifier(exec::Model& model, const data::ClassSet& set,
                                          const ClassEvaluation& options) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const layers::NetSpec& net = model.network().net;
  ClassInference inference(model);
  ClassEvaluationResult result{.accuracy = eval::TopK(inference.classes(), options.top),
                               .bad_images = {}};
  const data::EvalSpec spec = class_eval_spec(net, options.view);
  data::EvalLoader loader({.images = set.images,
                           .eval = spec,
                           .batch = std::max<std::int64_t>(1, inference.batch() / spec.views()),
                           .threads = options.threads,
                           .decode = {.exif = net.exif == layers::Exif::kApply},
                           .memory_left = device::memory_beside(model.executor().arena_bytes())});
  const auto total = static_cast<std::int64_t>(set.images.size());
  std::int64_t done = 0;
  while (const data::EvalBatch* batch = loader.next()) {
    const auto count = static_cast<std::int64_t>(batch->items.size());
    inference.run(batch->images, count, spec.views());
    for (std::int64_t i = 0; i < count; ++i) {
      const data::EvalItem& item = batch->items[static_cast<std::size_t>(i)];
      const auto index = static_cast<std::size_t>(item.index);
      if (!item.error.empty()) {
        result.bad_images.push_back({set.images[index], item.error});
        continue;
      }
      result.accuracy.add(inference.scores(i), set.classes[index]);
      if (options.each) options.each(index, inference.scores(i), result.accuracy);
    }
    done += count;
    if (options.progress) options.progress(done, total, static_cast<double>(done) / seconds());
  }
  if (result.accuracy.images() == 0) {
    throw Error(ErrorCode::kInvalidData, set.list.string(),
                "none of its {} images can be read; the first: {}", total,
                result.bad_images.front().reason);
  }
  result.seconds = seconds();
  return result;
}

}  // namespace lantern::train
