#include "train/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>

#include "core/error.hpp"
#include "core/log.hpp"
#include "data/loader.hpp"
#include "device/machine.hpp"
#include "train/augmented_sheet.hpp"
#include "train/checkpoints.hpp"
#include "train/classifier_setup.hpp"
#include "train/console_line.hpp"
#include "train/detector_setup.hpp"
#include "train/metrics.hpp"
#include "train/resume.hpp"
#include "train/run_evaluation.hpp"
#include "train/run_memory.hpp"
#include "train/run_start.hpp"
#include "train/schedule.hpp"
#include "train/update.hpp"

namespace lantern::train {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Run {
 public:
  Run(RunSetup setup, const TrainSettings& settings, Console& console)
      : settings_(settings),
        console_(console),
        setup_(std::move(setup)),
        net_(setup_.network.net),
        schedule_(schedule_of(setup_.network.net)),
        scale_(multi_scale_of(setup_.network, setup_.random, setup_.seed)),
        memory_(setup_, scale_, settings, console),
        on_nan_(on_nan(net_, settings)) {
    state_.batch = net_.batch;
    state_.seed = setup_.seed;
    state_.cfg_hash = setup_.cfg_hash;
    state_.threads = settings.threads;
  }

  TrainResult run() {
    console_.notice(layers::layer_table(setup_.network));
    model_ = memory_.model(0);
    start_model(*model_, setup_, settings_, console_, state_);
    if (state_.iteration != 0) make_model();
    Checkpoints checkpoints(setup_.backup, setup_.base, settings_.cfg_file, setup_.save_weights,
                            setup_.save_last, state_.iteration);
    Metrics metrics(settings_.log_file.empty() ? setup_.backup / (setup_.base + "_metrics.jsonl")
                                               : std::filesystem::path(settings_.log_file),
                    settings_.chart_file.empty()
                        ? setup_.backup / fmt::format("chart_{}.png", setup_.base)
                        : std::filesystem::path(settings_.chart_file),
                    setup_.base, net_.max_batches, net_.max_chart_loss);
    if (setup_.resumed) metrics.go_on_from(state_.iteration);
    if (settings_.show_images > 0) show_images();
    loader_.emplace(loader_spec());
    announce();
    RunEvaluation evaluation(setup_, memory_, console_);
    // A run that was killed behind its checkpoint may owe one.
    if (setup_.resumed) evaluation.after_iteration(*model_, state_, checkpoints, metrics);
    while (!is_over()) {
      iterate_or_save(checkpoints, metrics, evaluation);
      write_trace_if_due();
      plan_again_if_due();
      if (console_.interrupted()) {
        const auto path = checkpoints.save(*model_, "last", state_);
        metrics.draw_chart(hours_left());
        throw Error(ErrorCode::kInterrupted, "",
                    "stopped at iteration {}; weights are in {}, -resume goes on from there",
                    state_.iteration, path.string());
      }
    }
    result_.final_weights = checkpoints.save(*model_, "final", state_).string();
    metrics.draw_chart(0.0);
    result_.iterations = state_.iteration;
    result_.average_loss = state_.average_loss;
    result_.chart = metrics.chart().string();
    result_.best = state_.best;
    console_.notice(
        fmt::format("memory used: {} at most", format_bytes(device::peak_resident_memory())));
    const data::LoaderStats stats = loader_->stats();
    if (stats.bad_images > 0) {
      const auto images = static_cast<std::int64_t>(setup_.samples->images().size());
      log::warning("{} of {} images could not be used, {} are left", stats.bad_images, images,
                   images - stats.bad_images);
    }
    return result_;
  }

 private:
  // The model of this iteration's size; parameters and momentum stay where they are.
  void make_model() {
    const NetSize size = memory_.shapes().size(state_.iteration);
    const layers::NetSpec& net = model_->network().net;
    if (net.width == size.width && net.height == size.height &&
        model_->options().mini_batch == memory_.shapes().mini_batch(state_.iteration))
      return;
    model_.reset();  // no two sets of kernels at once
    model_ = memory_.model(state_.iteration);
  }

  data::LoaderSpec loader_spec() const {
    data::LoaderSpec spec;
    spec.samples = setup_.samples;
    spec.images_per_iteration = net_.batch;
    if (scale_.is_on()) {
      const NetSize largest = largest_size(scale_);
      spec.max_w = static_cast<int>(largest.width);
      spec.max_h = static_cast<int>(largest.height);
      spec.max_images = memory_.shapes().largest_images();
      spec.shape = [shapes = memory_.shapes()](std::int64_t iteration) {
        return shapes.loader_shape(iteration);
      };
    }
    spec.seed = setup_.seed;
    spec.sampling = net_.sampling == layers::Sampling::kReplacement ? data::Sampling::kReplacement
                                                                    : data::Sampling::kPermutation;
    spec.first_iteration = state_.iteration;
    spec.last_iteration = setup_.is_endless() ? -1 : net_.max_batches;
    spec.threads = settings_.loader_threads;
    spec.bad_data_limit = static_cast<double>(net_.bad_data_limit) / 100;
    spec.decode.exif = net_.exif == layers::Exif::kApply;
    spec.memory_left = device::memory_beside(memory_.arena_bytes());
    return spec;
  }

  void show_images() const {
    const std::filesystem::path path = setup_.backup / fmt::format("augmented_{}.png", setup_.base);
    const std::int64_t count =
        save_augmented_sheet(loader_spec(), settings_.show_images, setup_, path);
    console_.notice(
        fmt::format("the first {} training pictures, as augmented: {}", count, path.string()));
  }

  void announce() {
    if (setup_.is_endless()) {
      console_.notice(
          "max_batches=0: trains until it is interrupted (Ctrl-C), which saves the weights");
    }
    console_.notice(fmt::format("{} training images; mini-batch {} x {} subdivisions; seed {}",
                                setup_.samples->images().size(),
                                memory_.shapes().mini_batch(state_.iteration), net_.subdivisions,
                                setup_.seed));
    if (scale_.is_on()) {
      const auto sizes = possible_sizes(scale_);
      console_.notice(fmt::format(
          "random={}: sizes {} x {} to {} x {}, a new one every {} iterations; one arena "
          "for all",
          setup_.random, sizes.front().width, sizes.front().height, sizes.back().width,
          sizes.back().height, kIterationsPerSize));
    }
  }

  void resize_if_due() {
    if (!scale_.is_on() || state_.iteration % kIterationsPerSize != 0) return;
    const NetSize size = memory_.shapes().size(state_.iteration);
    if (size.width != model_->network().net.width || size.height != model_->network().net.height) {
      console_.line(fmt::format("Resizing, random_coef = {:.2f}\n\n {} x {} ",
                                setup_.random == 1 ? 1.4 : setup_.random, size.width, size.height));
    }
    make_model();
  }

  // Memory or a disk that fails ends the run, with the weights of the last finished iteration.
  void iterate_or_save(Checkpoints& checkpoints, Metrics& metrics, RunEvaluation& evaluation) {
    const std::int64_t finished = state_.iteration;
    try {
      iterate(checkpoints, metrics, evaluation);
    } catch (const Error& error) {
      const bool resource =
          error.code() == ErrorCode::kResource || error.code() == ErrorCode::kDevice;
      if (!resource || model_ == nullptr || state_.iteration != finished) throw;
      model_->abandon_iteration();
      const auto path = checkpoints.save(*model_, "last", state_);
      throw Error(error.code(), error.where(),
                  "{}; iteration {} is dropped, the weights of iteration {} are in {}",
                  error.message(), finished + 1, finished, path.string());
    }
  }

  // Looks at the times of the first iterations, once: the plan may have been made for others.
  void plan_again_if_due() {
    constexpr std::size_t kSettled = 10;
    const std::int64_t t = state_.iteration;
    if (has_looked_at_plan_ || is_over()) return;
    if (memory_.shapes().size(t) != memory_.shapes().size(t - 1)) computing_.clear();
    if (computing_.size() < kSettled) return;
    has_looked_at_plan_ = true;
    std::vector<double> last(computing_.end() - kSettled / 2, computing_.end());
    std::ranges::nth_element(last, last.begin() + kSettled / 4);
    const double seconds = last[kSettled / 4] / net_.subdivisions;
    if (!memory_.runs_otherwise(t, seconds)) return;
    model_.reset();  // its kernels and what they know of the arena
    memory_.plan_again(t, seconds);
    model_ = memory_.model(t);
  }

  void write_trace_if_due() {
    constexpr std::int64_t kTraced = 3;
    if (!memory_.trace() || trace_written_) return;
    if (++traced_ < kTraced && !is_over()) return;
    trace_written_ = true;
    memory_.trace()->write(settings_.trace_file);
    console_.notice(
        fmt::format("trace of the first {} iterations: {}", traced_, settings_.trace_file));
    memory_.end_trace();
  }

  void iterate(Checkpoints& checkpoints, Metrics& metrics, RunEvaluation& evaluation) {
    const auto wall = Clock::now();
    resize_if_due();
    const data::Batch& batch = loader_->next();
    const double waited = seconds_since(wall);
    const auto start = Clock::now();
    const std::int64_t mini_batch = model_->options().mini_batch;
    ops::RunContext context{.seed = setup_.seed,
                            .iteration = state_.iteration + 1,
                            .momentum = net_.momentum,
                            .decay = net_.decay,
                            .batch = static_cast<float>(batch.count),
                            .max_iterations = net_.max_batches,
                            .burn_in = net_.burn_in};
    context.learning_rate =
        static_cast<float>(learning_rate(schedule_, context.iteration) * state_.rate_factor);
    context.averaging = averaging_at(net_, context.iteration, state_.averages);
    const auto image_floats =
        static_cast<std::size_t>(std::int64_t{batch.channels} * batch.net_h * batch.net_w);
    const auto truth_floats = static_cast<std::size_t>(model_->lowered().truth_floats);
    double cost = 0;
    IterationRecord record;
    for (int part = 0; part < net_.subdivisions; ++part) {
      context.subdivision = part;
      const auto first = static_cast<std::size_t>(part * mini_batch);
      const auto count = static_cast<std::size_t>(mini_batch);
      model_->run_mini_batch(batch.images.subspan(first * image_floats, count * image_floats),
                             batch.truth.subspan(first * truth_floats, count * truth_floats),
                             context);
      record.losses = model_->losses();
      cost += printed_cost(setup_, record.losses);
      if (!std::isfinite(cost)) break;
    }
    const double loss = cost / static_cast<double>(batch.count);
    const std::optional<std::string> fault = update_unless_faulty(*model_, loss, context, batch);
    const std::int64_t images = batch.count;
    record.width = batch.net_w;
    record.height = batch.net_h;
    loader_->release();
    if (fault && recover(*fault, checkpoints, metrics) == Recovery::kRolledBack) return;
    if (!fault) {
      state_.skipped_in_a_row = 0;
      double& average = state_.average_loss;
      average = average < 0 ? loss : 0.9 * average + 0.1 * loss;
      state_.averages |= context.averaging != ops::Averaging::kOff;
    }
    ++state_.iteration;
    record.iteration = state_.iteration;
    record.loss = loss;
    record.average_loss = state_.average_loss;
    record.rate = context.learning_rate;
    record.seconds = seconds_since(start);
    if (!has_looked_at_plan_) computing_.push_back(record.seconds);
    record.seconds_waiting = waited;
    record.images = state_.iteration * net_.batch;
    record.seed = setup_.seed;
    result_.seconds_computing += record.seconds;
    result_.seconds_waiting += waited;
    result_.images += images;
    if (waited > 0.1 && state_.iteration > 1) {
      console_.notice(fmt::format(
          "Loaded: {:f} seconds - performance bottleneck on CPU or Disk HDD/SSD", waited));
    }
    metrics.add(record);
    recent_.push_back(seconds_since(wall));
    if (recent_.size() > 100) recent_.pop_front();
    console_.line(iteration_line(setup_, record,
                                 hours_left().value_or(std::numeric_limits<double>::infinity())));
    console_.progress("training", state_.iteration, net_.max_batches,
                      static_cast<double>(images) / recent_.back(), "images/s");
    // Weights first: what fails behind them costs no training.
    try {
      checkpoints.after_iteration(*model_, state_);
    } catch (const Error& error) {  // a weight that is not finite
      if (error.code() != ErrorCode::kFailed || on_nan_ != layers::OnNan::kRollback) throw;
      recover(error.what(), checkpoints, metrics);
      return;
    }
    evaluation.after_iteration(*model_, state_, checkpoints, metrics);
    if (state_.iteration % 100 == 0 || state_.iteration == net_.max_batches - 1)
      metrics.draw_chart(hours_left());
  }

  enum class Recovery : std::uint8_t { kDropped, kRolledBack };

  // What on_nan= makes of an iteration with something that is not finite. Ends the run when that is
  // what it says, or when it no longer helps.
  Recovery recover(const std::string& fault, const Checkpoints& checkpoints, Metrics& metrics) {
    constexpr int kMostSkipped = 3, kMostRollbacks = 5;
    if (on_nan_ == layers::OnNan::kSkip && ++state_.skipped_in_a_row <= kMostSkipped) {
      log::warning("{}; the iteration is dropped", fault);
      return Recovery::kDropped;
    }
    if (state_.iteration > failed_at_) rollbacks_ = 0;
    const bool saved = !checkpoints.newest().empty() || setup_.resumed;
    if (on_nan_ == layers::OnNan::kRollback && saved && ++rollbacks_ <= kMostRollbacks) {
      roll_back(fault, checkpoints, metrics);
      return Recovery::kRolledBack;
    }
    throw Error(ErrorCode::kFailed, settings_.cfg_file,
                "{}; nothing of it was used and no file was written over: lower learning_rate or "
                "lengthen burn_in, "
                "and {}",
                fault,
                checkpoints.newest().empty() ? "start again (this run had saved no weights yet)"
                                             : "go on from " + checkpoints.newest().string());
  }

  // Back to the last good state, at half the rate.
  void roll_back(const std::string& fault, const Checkpoints& checkpoints, Metrics& metrics) {
    const std::filesystem::path path =
        checkpoints.newest().empty() ? setup_.resumed->path : state_beside(checkpoints.newest());
    const double factor = state_.rate_factor / 2;
    failed_at_ = std::max(failed_at_, state_.iteration);
    restore_model(*model_, {path, io::read_state(path)}, state_);
    state_.rate_factor = factor;
    log::warning("{}; back to iteration {} ({}), with {} of the learning rate", fault,
                 state_.iteration, path.string(), factor);
    make_model();
    metrics.forget_after(state_.iteration);
    loader_.reset();
    loader_.emplace(loader_spec());
  }

  bool is_over() const { return !setup_.is_endless() && state_.iteration >= net_.max_batches; }

  std::optional<double> hours_left() const {
    if (setup_.is_endless()) return std::nullopt;
    double sum = 0;
    for (const double seconds : recent_) sum += seconds;
    const double each = recent_.empty() ? 0 : sum / static_cast<double>(recent_.size());
    return each * static_cast<double>(net_.max_batches - state_.iteration) / 3600;
  }

  const TrainSettings& settings_;
  Console& console_;
  RunSetup setup_;
  const layers::NetSpec& net_;
  Schedule schedule_;
  MultiScale scale_;
  RunMemory memory_;
  layers::OnNan on_nan_;
  std::unique_ptr<exec::Model> model_;
  TrainResult result_;
  io::TrainingState state_;  ///< but for its arrays, which are the model's
  std::optional<data::TrainingLoader> loader_;
  std::int64_t traced_ = 0;
  bool trace_written_ = false;
  std::int64_t failed_at_ = -1;  ///< the last iteration that was rolled back
  int rollbacks_ = 0;            ///< without getting past it
  std::deque<double> recent_;
  std::vector<double> computing_;  ///< seconds of the first iterations of this size
  bool has_looked_at_plan_ = false;
};

}  // namespace

TrainResult train_detector(const TrainSettings& settings, Console& console) {
  return Run(set_up_detector(settings, console), settings, console).run();
}

TrainResult train_classifier(const TrainSettings& settings, Console& console) {
  return Run(set_up_classifier(settings, console), settings, console).run();
}

}  // namespace lantern::train
