#include "eval/list_inference.hpp"

#include <chrono>

#include "device/machine.hpp"

namespace lantern::eval {

void run_list(exec::Model& model, Inference& inference, const ListSpec& spec,
              const std::function<void(const ListImage&)>& use, const ListProgress& progress) {
  const layers::NetSpec& net = model.network().net;
  data::EvalLoader loader({.images = spec.images,
                           .eval = {.net_w = net.width,
                                    .net_h = net.height,
                                    .channels = net.channels,
                                    .letter_box = spec.letter_box},
                           .batch = inference.batch(),
                           .threads = spec.threads,
                           .decode = {.exif = spec.exif},
                           .memory_left = device::memory_beside(model.executor().arena_bytes())});
  const auto total = static_cast<std::int64_t>(spec.images.size());
  const auto start = std::chrono::steady_clock::now();
  std::int64_t done = 0;
  while (const data::EvalBatch* batch = loader.next()) {
    const auto count = static_cast<std::int64_t>(batch->items.size());
    inference.run(batch->images, count);
    for (std::int64_t i = 0; i < count; ++i) {
      use({.item = batch->items[static_cast<std::size_t>(i)], .place = i});
    }
    done += count;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (progress) progress(done, total, static_cast<double>(done) / seconds.count());
  }
}

}  // namespace lantern::eval
