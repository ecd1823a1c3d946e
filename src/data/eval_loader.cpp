#include <algorithm>
#include <atomic>

#include "core/error.hpp"
#include "data/loader.hpp"
#include "data/pipeline.hpp"

namespace lantern::data {

struct EvalLoader::State {
  explicit State(EvalLoaderSpec given) : spec(std::move(given)) {
    spec.decode.channels = spec.eval.channels;
    const auto total = std::max<std::int64_t>(1, static_cast<std::int64_t>(spec.images.size()));
    spec.threads = std::max(spec.threads, 1);
    spec.batch = std::clamp<std::int64_t>(spec.batch, 1, total);
    spec.queue = static_cast<int>(
        std::clamp<std::int64_t>(spec.queue, 1, (total + spec.batch - 1) / spec.batch));
    const auto picture = static_cast<Bytes>(elements() * sizeof(float));
    check_memory(spec.queue * spec.batch * picture, spec.memory_left,
                 "a smaller -batch or network size needs less");
    places.resize(static_cast<std::size_t>(spec.queue));
    for (Place& place : places) {
      place.pixels.resize(elements() * static_cast<std::size_t>(spec.batch));
      place.batch.items.reserve(static_cast<std::size_t>(spec.batch));
    }
    threads.resize(static_cast<std::size_t>(spec.threads));
  }

  struct Place {
    std::vector<float> pixels;
    EvalBatch batch;
  };
  struct Thread {
    std::vector<std::byte> file;
    Image image;
  };

  /// Floats of one picture, all its views.
  std::size_t elements() const { return spec.eval.floats(); }
  Place& place(std::int64_t step) { return places[static_cast<std::size_t>(step % spec.queue)]; }

  std::int64_t open(std::int64_t step) {
    const auto total = static_cast<std::int64_t>(spec.images.size());
    const std::int64_t first = step * spec.batch;
    if (first >= total) return -1;
    const std::int64_t count = std::min(spec.batch, total - first);
    Place& to = place(step);
    to.batch.images = std::span(to.pixels).first(elements() * static_cast<std::size_t>(count));
    to.batch.items.assign(static_cast<std::size_t>(count), {});
    return count;
  }

  void run(std::int64_t step, std::int64_t task, int thread_number) {
    EvalBatch& batch = place(step).batch;
    Thread& thread = threads[static_cast<std::size_t>(thread_number)];
    const auto slot = static_cast<std::size_t>(task);
    EvalItem& item = batch.items[slot];
    const std::span<float> pixels = batch.images.subspan(slot * elements(), elements());
    item.index = step * spec.batch + task;
    try {
      load_image(spec.images[static_cast<std::size_t>(item.index)], spec.decode, thread.file,
                 thread.image);
      item.image_w = thread.image.w;
      item.image_h = thread.image.h;
      prepare_eval_image(thread.image, spec.eval, pixels);
      ++made;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidData) throw;
      item.error = error.what();
      std::fill(pixels.begin(), pixels.end(), 0.0F);
      ++bad;
    }
  }

  EvalLoaderSpec spec;
  std::vector<Place> places;
  std::vector<Thread> threads;
  std::int64_t reading = 0;
  bool is_held = false;
  std::atomic<std::int64_t> made{0}, bad{0};
  std::unique_ptr<BatchPipeline> pipeline;  ///< last member: its threads end before what they use
};

EvalLoader::EvalLoader(EvalLoaderSpec spec) : state_(std::make_unique<State>(std::move(spec))) {
  State* state = state_.get();
  state->pipeline = std::make_unique<BatchPipeline>(
      state->spec.threads, state->spec.queue, 0,
      BatchPipeline::Work{.open = [state](std::int64_t step) { return state->open(step); },
                          .run = [state](std::int64_t step, std::int64_t task,
                                         int thread) { state->run(step, task, thread); }});
}

EvalLoader::~EvalLoader() = default;

const EvalBatch* EvalLoader::next() {
  if (state_->is_held) state_->pipeline->release(state_->reading++);
  state_->is_held = state_->pipeline->wait(state_->reading);
  return state_->is_held ? &state_->place(state_->reading).batch : nullptr;
}

LoaderStats EvalLoader::stats() const {
  return {.seconds_waited = state_->pipeline->seconds_waited(),
          .images = state_->made,
          .bad_images = state_->bad};
}

}  // namespace lantern::data
