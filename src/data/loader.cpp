#include "data/loader.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/rng.hpp"
#include "data/pipeline.hpp"

namespace lantern::data {

SampleOrder::SampleOrder(std::uint64_t seed, std::int64_t images, Sampling sampling)
    : seed_(seed), images_(images), sampling_(sampling) {
  LANTERN_ASSERT(images > 0, "there is an image to draw");
}

std::int64_t SampleOrder::index(std::int64_t position) {
  if (sampling_ == Sampling::kReplacement) {
    return Rng(seed_, "data.sample", static_cast<std::uint64_t>(position))
        .uniform_int(0, images_ - 1);
  }
  const std::int64_t number = position / images_;
  Epoch& epoch = epochs_[number % 2];
  if (epoch.number != number) {
    // Fisher-Yates, one stream of draws for each epoch.
    Rng rng(seed_, "data.epoch", static_cast<std::uint64_t>(number));
    epoch.order.resize(static_cast<std::size_t>(images_));
    std::iota(epoch.order.begin(), epoch.order.end(), 0U);
    for (std::int64_t i = images_ - 1; i > 0; --i) {
      std::swap(epoch.order[static_cast<std::size_t>(i)],
                epoch.order[static_cast<std::size_t>(rng.uniform_int(0, i))]);
    }
    epoch.number = number;
  }
  return epoch.order[static_cast<std::size_t>(position % images_)];
}

namespace {

/// Images that cannot be used: counted once each, up to a limit.
class BadImages {
 public:
  BadImages(std::int64_t images, double limit) : images_(images), limit_(limit) {}

  /// Throws when the limit has been passed, so that no thread searches on among files that are all
  /// bad.
  bool contains(std::int64_t index) const {
    const std::lock_guard lock(mutex_);
    if (failure_) throw Error(*failure_);
    return bad_.contains(index);
  }

  /// Names the file at the first call for it; throws when that was one too many.
  void add(std::int64_t index, const Error& error) {
    const std::lock_guard lock(mutex_);
    if (failure_) throw Error(*failure_);
    if (!bad_.insert(index).second) return;
    if (named_.size() < 5) named_.emplace_back(error.what());
    log::warning("{}; another image takes its place", error.what());
    const auto count = static_cast<std::int64_t>(bad_.size());
    const bool is_over = static_cast<double>(count) > limit_ * static_cast<double>(images_);
    if (count < images_ && !is_over) return;
    std::string names;
    for (const std::string& name : named_) names += "\n  " + name;
    if (count == images_) {
      failure_ = Error(ErrorCode::kInvalidData, "", "none of the {} images can be used:{}", images_,
                       names);
    } else {
      failure_ = Error(ErrorCode::kInvalidData, "",
                       "{} of {} images cannot be used, more than bad_data_limit={:g} (percent, in "
                       "[net]) allows ({} "
                       "are left):{}",
                       count, images_, 100 * limit_, images_ - count, names);
    }
    throw Error(*failure_);
  }

  std::int64_t count() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::int64_t>(bad_.size());
  }

 private:
  std::int64_t images_;
  double limit_;
  mutable std::mutex mutex_;
  std::unordered_set<std::int64_t> bad_;
  std::vector<std::string> named_;
  std::optional<Error> failure_;
};

}  // namespace

struct TrainingLoader::State {
  explicit State(LoaderSpec given)
      : spec(std::move(given)),
        samples(*spec.samples),
        usual(samples.shape()),
        order(spec.seed, image_count(), spec.sampling),
        bad(image_count(), spec.bad_data_limit),
        reading(spec.first_iteration) {
    spec.decode.channels = usual.channels;
    spec.queue = std::max(spec.queue, 1);
    spec.threads = std::max(spec.threads, 1);
    const SampleShape largest =
        usual.at(std::max(spec.max_w, usual.net_w), std::max(spec.max_h, usual.net_h));
    const auto images =
        static_cast<std::size_t>(std::max(spec.max_images, spec.images_per_iteration));
    const std::size_t floats = images * (largest.picture_floats() + usual.truth_floats);
    check_memory(
        spec.queue * static_cast<Bytes>(floats * sizeof(float)), spec.memory_left,
        "a smaller batch or network size in the cfg needs less; `lantern plan` shows how much");
    for (int i = 0; i < spec.queue; ++i) {
      Place& place = places.emplace_back();
      place.pixels.resize(images * largest.picture_floats());
      place.truth.resize(images * usual.truth_floats);
      place.batch.indices.reserve(images);
      place.batch.paths.reserve(images);
    }
    threads.resize(static_cast<std::size_t>(spec.threads));
    for (Thread& thread : threads) thread.scratch = samples.new_scratch();
  }

  struct Place {
    std::vector<float> pixels, truth;
    Batch batch;
  };
  struct Thread {
    std::unique_ptr<SampleScratch> scratch;
    std::vector<std::byte> file;
    Image images[SampleMaker::kMaxSources];
  };

  std::int64_t image_count() const { return static_cast<std::int64_t>(samples.images().size()); }
  Place& place(std::int64_t iteration) {
    return places[static_cast<std::size_t>(iteration % spec.queue)];
  }

  /// Step of the pipeline: one iteration. Called in order.
  std::int64_t open(std::int64_t iteration) {
    if (spec.last_iteration >= 0 && iteration >= spec.last_iteration) return -1;
    IterationShape shape{.net_w = usual.net_w,
                         .net_h = usual.net_h,
                         .images = spec.images_per_iteration,
                         .first_image = iteration * spec.images_per_iteration};
    if (spec.shape) shape = spec.shape(iteration);
    Place& to = place(iteration);
    const auto count = static_cast<std::size_t>(shape.images);
    const std::size_t elements = count * usual.at(shape.net_w, shape.net_h).picture_floats();
    LANTERN_ASSERT(elements <= to.pixels.size() && count * usual.truth_floats <= to.truth.size(),
                   "an iteration stays below the largest shape announced");
    Batch& batch = to.batch;
    batch.iteration = iteration;
    batch.net_w = shape.net_w;
    batch.net_h = shape.net_h;
    batch.channels = usual.channels;
    batch.count = shape.images;
    batch.images = std::span(to.pixels).first(elements);
    batch.truth = std::span(to.truth).first(count * usual.truth_floats);
    batch.indices.clear();
    for (std::int64_t i = 0; i < shape.images; ++i)
      batch.indices.push_back(order.index(shape.first_image + i));
    batch.paths.assign(count, {});
    return shape.images;
  }

  /// Loads the image at `index`, or another one instead: deterministic in (seed, iteration, slot,
  /// source).
  std::int64_t load(std::int64_t index, const SampleKey& key, int source, Thread& thread) {
    Rng rng(spec.seed, "data.replacement", static_cast<std::uint64_t>(key.iteration),
            key.slot * 8U + static_cast<std::uint32_t>(source));
    for (;; index = rng.uniform_int(0, image_count() - 1)) {
      if (bad.contains(index)) continue;
      try {
        load_image(samples.images()[static_cast<std::size_t>(index)], spec.decode, thread.file,
                   thread.images[source]);
        return index;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kInvalidData) throw;
        bad.add(index, error);
      }
    }
  }

  void run(std::int64_t iteration, std::int64_t task, int thread_number) {
    Batch& batch = place(iteration).batch;
    Thread& thread = threads[static_cast<std::size_t>(thread_number)];
    const SampleShape shape = usual.at(batch.net_w, batch.net_h);
    const SampleKey key{
        .seed = spec.seed, .iteration = iteration, .slot = static_cast<std::uint32_t>(task)};
    const int count = samples.sources(key, shape);
    LANTERN_ASSERT(count >= 1 && count <= SampleMaker::kMaxSources, "a sample has its sources");
    SourceImage sources[SampleMaker::kMaxSources];
    const auto slot = static_cast<std::size_t>(task);
    for (int s = 0; s < count; ++s) {
      std::int64_t index = batch.indices[slot];
      if (s > 0) {
        index = Rng(spec.seed, "data.partner", static_cast<std::uint64_t>(iteration),
                    key.slot * 8U + static_cast<std::uint32_t>(s))
                    .uniform_int(0, image_count() - 1);
      }
      index = load(index, key, s, thread);
      sources[s] = {&thread.images[s], index};
      if (s == 0) {
        batch.indices[slot] = index;
        batch.paths[slot] = samples.images()[static_cast<std::size_t>(index)];
      }
    }
    samples.make(key, shape, std::span<const SourceImage>(sources, static_cast<std::size_t>(count)),
                 *thread.scratch,
                 batch.images.subspan(slot * shape.picture_floats(), shape.picture_floats()),
                 batch.truth.subspan(slot * shape.truth_floats, shape.truth_floats));
    ++made;
  }

  LoaderSpec spec;
  const SampleMaker& samples;
  const SampleShape usual;  ///< at the cfg's size
  SampleOrder order;
  BadImages bad;
  std::vector<Place> places;
  std::vector<Thread> threads;
  std::int64_t reading;  ///< iteration that next() gives
  bool is_held = false;
  std::atomic<std::int64_t> made{0};
  std::unique_ptr<BatchPipeline> pipeline;  ///< last member: its threads end before what they use
};

TrainingLoader::TrainingLoader(LoaderSpec spec) {
  LANTERN_ASSERT(spec.samples != nullptr, "there is something to draw from");
  if (spec.samples->images().empty())
    throw Error(ErrorCode::kInvalidData, "", "the training list has no images");
  state_ = std::make_unique<State>(std::move(spec));
  State* state = state_.get();
  state->pipeline = std::make_unique<BatchPipeline>(
      state->spec.threads, state->spec.queue, state->spec.first_iteration,
      BatchPipeline::Work{.open = [state](std::int64_t step) { return state->open(step); },
                          .run = [state](std::int64_t step, std::int64_t task,
                                         int thread) { state->run(step, task, thread); }});
}

TrainingLoader::~TrainingLoader() = default;

const Batch& TrainingLoader::next() {
  release();
  const bool there = state_->pipeline->wait(state_->reading);
  LANTERN_ASSERT(there, "no iteration is asked for beyond the last one");
  state_->is_held = true;
  return state_->place(state_->reading).batch;
}

void TrainingLoader::release() {
  if (!state_->is_held) return;
  state_->is_held = false;
  state_->pipeline->release(state_->reading++);
}

LoaderStats TrainingLoader::stats() const {
  return {.seconds_waited = state_->pipeline->seconds_waited(),
          .images = state_->made,
          .bad_images = state_->bad.count()};
}

std::int64_t TrainingLoader::bytes() const {
  std::size_t elements = 0;
  for (const State::Place& place : state_->places)
    elements += place.pixels.size() + place.truth.size();
  return static_cast<std::int64_t>(elements * sizeof(float));
}

}  // namespace lantern::data
