#include "lantern/net.hpp"

#include <algorithm>
#include <type_traits>

#include "api/guard.hpp"
#include "api/net_impl.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "data/lists.hpp"
#include "device/machine.hpp"
#include "eval/top_k.hpp"
#include "io/model_weights.hpp"

namespace lantern {

namespace {

void keep(const Diagnostics& diagnostics, std::vector<std::string>& lines) {
  for (const Diagnostics::Entry& entry : diagnostics.entries()) lines.push_back(entry.to_string());
}

layers::Network read_network(const std::string& cfg, const LoadOptions& options,
                             std::vector<std::string>& warnings) {
  Diagnostics diagnostics;
  layers::Overrides overrides{.batch = 1, .subdivisions = 1, .time_steps = 1};
  if (options.width > 0) overrides.width = options.width;
  if (options.height > 0) overrides.height = options.height;
  layers::Network network = layers::load_network(cfg, read_file(cfg), diagnostics, overrides);
  diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  keep(diagnostics, warnings);
  return network;
}

void check(const LoadOptions& options) {
  constexpr int kMostImages = 1 << 16, kMostThreads = 1024, kLargestSide = 1 << 16;
  if (options.batch < 1 || options.batch > kMostImages) {
    throw Error(ErrorCode::kUsage, "batch", "is {}, want 1 to {}", options.batch, kMostImages);
  }
  if (options.threads < 0 || options.threads > kMostThreads) {
    throw Error(ErrorCode::kUsage, "threads", "is {}, want 1 to {}, or 0 for the cores",
                options.threads, kMostThreads);
  }
  if (std::min(options.width, options.height) < 0 ||
      std::max(options.width, options.height) > kLargestSide) {
    throw Error(ErrorCode::kUsage, "size", "is {} x {}, want at most {}; 0 takes the cfg's",
                options.width, options.height, kLargestSide);
  }
}

eval::NmsKind kind_of(Nms nms, eval::NmsKind otherwise) {
  switch (nms) {
    case Nms::kDefault:
      return eval::NmsKind::kDefault;
    case Nms::kGreedy:
      return eval::NmsKind::kGreedy;
    case Nms::kDiou:
      return eval::NmsKind::kDiou;
    case Nms::kCorners:
      return eval::NmsKind::kCorners;
    case Nms::kCfg:
    case Nms::kNone:
      break;
  }
  return otherwise;
}

std::vector<Detection> detections_of(const eval::DetectionList& list, const ImageView& image,
                                     const DetectOptions& options) {
  std::vector<Detection> found;
  const float across = options.pixels ? static_cast<float>(image.width) : 1.0F;
  const float down = options.pixels ? static_cast<float>(image.height) : 1.0F;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const int best = list.best_class(i);
    if (best < 0) continue;  // suppressed
    const eval::Box& box = list[i].box;
    Detection& detection = found.emplace_back();
    detection.box = {box.x * across, box.y * down, box.w * across, box.h * down};
    detection.class_id = best;
    detection.confidence = list.best_probability(i);
    detection.objectness = list[i].objectness;
    if (options.all_probabilities) {
      const std::span<const float> all = list.probabilities(i);
      detection.probabilities.assign(all.begin(), all.end());
    }
  }
  std::ranges::stable_sort(found, std::greater{}, &Detection::confidence);
  return found;
}

std::vector<ClassScore> best_of(std::span<const float> scores, int top) {
  std::vector<ClassScore> best;
  const int all = static_cast<int>(scores.size());
  for (const int c : eval::top_classes(scores, top > 0 ? top : all))
    best.push_back({c, scores[static_cast<std::size_t>(c)]});
  return best;
}

// Runs any number of pictures, a batch at a time: prepare(image, out) fills a place of the input,
// take(image index, place, outputs) reads what came of it.
template <typename Prepare, typename Take>
void run_all(Net::Impl& net, std::size_t count, Prepare prepare, Take take) {
  net.require_steps(count);
  const auto batch = static_cast<std::size_t>(net.model->options().forward_batch);
  const std::size_t one = net.input_floats();
  std::vector<float> input(std::min(count, std::size_t{1}) * batch * one);
  Net::Impl::Outputs outputs;
  for (std::size_t first = 0; first < count; first += batch) {
    const std::size_t here = std::min(batch, count - first);
    for (std::size_t i = 0; i < here; ++i) {
      prepare(first + i, std::span(input).subspan(i * one, one));
    }
    net.run(input, outputs);
    for (std::size_t i = 0; i < here; ++i) take(first + i, i, outputs);
  }
}

}  // namespace

Net::Impl::Impl(const std::string& cfg, const std::string& weights, const LoadOptions& options) {
  check(options);
  const api::TeamSize restore;
  layers::Network network = read_network(cfg, options, warnings);
  model = std::make_unique<exec::Model>(
      std::move(network),
      exec::ModelOptions{.training = false,
                         .forward_batch = options.batch,
                         .forward_sequences = options.batch,
                         .threads = options.threads > 0 ? options.threads : device::usable_cores(),
                         .fold = true});
  Diagnostics diagnostics;
  io::load_weights(*model, weights, io::Purpose::kEvaluation, diagnostics);
  last_output = *model->lowered().forward_outputs.back();
  const layers::Layer& last = model->network().layers.back();
  if (!model->lowered().heads.empty()) {
    inference.emplace(*model);
    classes = inference->classes();
  } else {
    classes = static_cast<int>(output_floats());
  }
  if (!options.names.empty()) {
    names = data::read_names(options.names);
    data::check_class_counts(classes, last.where, nullptr, &names, options.names, diagnostics);
  }
  keep(diagnostics, warnings);
}

api::InputSpec Net::Impl::input() const {
  const layers::Dims in = model->network().input();
  return {static_cast<int>(in.w), static_cast<int>(in.h), static_cast<int>(in.c)};
}

std::size_t Net::Impl::input_floats() const {
  return static_cast<std::size_t>(model->network().input().elements());
}

std::size_t Net::Impl::output_floats() const {
  return static_cast<std::size_t>(model->lowered().graph.type(last_output).shape.elements() /
                                  model->options().forward_batch);
}

bool Net::Impl::cfg_letterbox() const { return model->network().net.letter_box != 0; }

void Net::Impl::require(NetKind wanted, const char* function) const {
  const bool detects = inference.has_value();
  if (detects == (wanted == NetKind::kDetector)) return;
  throw Error(ErrorCode::kUsage, model->network().path, "{} is for a {}; this network is a {}",
              function, detects ? "classifier" : "detector", detects ? "detector" : "classifier");
}

void Net::Impl::require_steps(std::size_t pictures) const {
  const auto sequences = static_cast<std::size_t>(model->options().forward_batch);
  if (!is_recurrent() || pictures % sequences == 0) return;
  throw Error(
      ErrorCode::kUsage, model->network().path,
      "{} pictures are no whole steps of the {} sequences that were asked for (batch): this "
      "network is recurrent, picture i belongs to sequence i % {}",
      pictures, sequences, sequences);
}

void Net::Impl::reset() {
  const std::scoped_lock lock(turn);
  model->forget_states();
}

void Net::Impl::run(std::span<const float> batch_input, Outputs& outputs) {
  outputs.last.resize(output_floats() * static_cast<std::size_t>(model->options().forward_batch));
  const api::TeamSize restore;
  const std::scoped_lock lock(turn);
  if (inference) {
    inference->run(batch_input, model->options().forward_batch, outputs.heads);
  } else {
    model->forward(batch_input);
  }
  model->executor().read(last_output, outputs.last);
}

Net::Net(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Net::Net(Net&&) noexcept = default;
Net& Net::operator=(Net&&) noexcept = default;
Net::~Net() = default;

Net Net::load(const std::string& cfg, const std::string& weights, const LoadOptions& options) {
  return api::guarded([&] { return Net(std::make_unique<Impl>(cfg, weights, options)); });
}

NetKind Net::kind() const { return impl_->inference ? NetKind::kDetector : NetKind::kClassifier; }
int Net::width() const { return impl_->input().width; }
int Net::height() const { return impl_->input().height; }
int Net::channels() const { return impl_->input().channels; }
bool Net::is_recurrent() const { return impl_->is_recurrent(); }
void Net::reset() {
  api::guarded([&] { impl_->reset(); });
}
int Net::batch() const { return static_cast<int>(impl_->model->options().forward_batch); }
int Net::classes() const { return impl_->classes; }
const std::vector<std::string>& Net::names() const { return impl_->names; }
const std::vector<std::string>& Net::warnings() const { return impl_->warnings; }
std::int64_t Net::memory_bytes() const { return impl_->model->executor().arena_bytes(); }
std::int64_t Net::output_size() const { return static_cast<std::int64_t>(impl_->output_floats()); }

std::vector<Detection> Net::detect(const ImageView& image, const DetectOptions& options) const {
  return detect(std::span(&image, 1), options).front();
}

std::vector<std::vector<Detection>> Net::detect(std::span<const ImageView> images,
                                                const DetectOptions& options) const {
  return api::guarded([&] {
    impl_->require(NetKind::kDetector, "detect()");
    const bool letterbox = options.letterbox.value_or(impl_->cfg_letterbox());
    std::vector<std::vector<Detection>> found(images.size());
    run_all(
        *impl_, images.size(),
        [&](std::size_t i, std::span<float> out) {
          api::prepare_detector_input(images[i], impl_->input(), letterbox, out);
        },
        [&](std::size_t i, std::size_t place, const Impl::Outputs& outputs) {
          eval::Inference::Options decoding{
              .threshold = options.threshold,
              .nms_threshold = options.nms_threshold,
              .suppress = options.nms != Nms::kNone,
              .nms_kind = kind_of(options.nms, impl_->inference->nms().kind)};
          if (letterbox) decoding.letterboxed_image = {images[i].width, images[i].height};
          found[i] = detections_of(impl_->list(outputs, static_cast<std::int64_t>(place), decoding),
                                   images[i], options);
        });
    return found;
  });
}

std::vector<ClassScore> Net::classify(const ImageView& image, int top) const {
  return classify(std::span(&image, 1), top).front();
}

std::vector<std::vector<ClassScore>> Net::classify(std::span<const ImageView> images,
                                                   int top) const {
  return api::guarded([&] {
    impl_->require(NetKind::kClassifier, "classify()");
    std::vector<std::vector<ClassScore>> found(images.size());
    const std::size_t one = impl_->output_floats();
    run_all(
        *impl_, images.size(),
        [&](std::size_t i, std::span<float> out) {
          api::prepare_classifier_input(images[i], impl_->input(), out);
        },
        [&](std::size_t i, std::size_t place, const Impl::Outputs& outputs) {
          found[i] = best_of(std::span(outputs.last).subspan(place * one, one), top);
        });
    return found;
  });
}

std::vector<float> Net::predict(std::span<const float> input, int count) const {
  return api::guarded([&] {
    const std::size_t in = impl_->input_floats();
    const std::size_t out = impl_->output_floats();
    if (count < 1 || input.size() != in * static_cast<std::size_t>(count)) {
      throw Error(ErrorCode::kUsage, "input", "has {} values, want {} pictures of {}", input.size(),
                  count, in);
    }
    std::vector<float> result(out * static_cast<std::size_t>(count));
    run_all(
        *impl_, static_cast<std::size_t>(count),
        [&](std::size_t i, std::span<float> place) {
          std::ranges::copy(input.subspan(i * in, in), place.begin());
        },
        [&](std::size_t i, std::size_t place, const Impl::Outputs& outputs) {
          std::copy_n(outputs.last.begin() + static_cast<std::ptrdiff_t>(place * out), out,
                      result.begin() + static_cast<std::ptrdiff_t>(i * out));
        });
    return result;
  });
}

const char* version() { return LANTERN_VERSION; }

}  // namespace lantern
