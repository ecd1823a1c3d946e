#include "train/run_memory.hpp"

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "data/image.hpp"
#include "device/file_tier.hpp"
#include "device/machine.hpp"
#include "exec/measure_machine.hpp"
#include "plan/checker.hpp"
#include "plan/planner.hpp"
#include "train/run_refusal.hpp"

namespace lantern::train {

namespace {

constexpr std::size_t kTraceEvents = std::size_t{1} << 16;
/// Code that is read in only when kernels run for the first time.
constexpr Bytes kUnreadCode = 32_MiB;
/// Log, chart, buffers of files, stacks.
constexpr Bytes kRest = 8_MiB;
/// Kernels of another size, or those of an evaluation beside those of training, may take more than
/// the ones that were measured.
constexpr Bytes kMoreKernels = 3_MiB;

// What earlier networks have left behind.
void tidy_up() {
  ops::forget_unused_kernels();
  device::return_free_memory();
}

Bytes address_space_for(const BesideArena& beside) {
  // Stacks of threads and the like are mapped, though never touched.
  constexpr Bytes kMappedOnly = 128_MiB;
  return beside.pictures + beside.evaluation + beside.rest + kMappedOnly;
}

// The largest of some pictures, decoded.
Bytes picture_bytes(const std::vector<std::string>& images, const data::DecodeOptions& decode) {
  constexpr std::size_t kLooks = 8;
  Bytes most = 0;
  const std::size_t step = std::max<std::size_t>(1, images.size() / kLooks);
  for (std::size_t i = 0; i < images.size(); i += step) {
    try {
      most = std::max(most, static_cast<Bytes>(data::load_image(images[i], decode).pixels.size()));
    } catch (const Error&) {
      continue;  // the loader says so when it is due
    }
  }
  return most;
}

}  // namespace

std::string BesideArena::text() const {
  std::string text = fmt::format("{} program and kernels, {} pictures held ready",
                                 format_bytes(program), format_bytes(pictures));
  if (evaluation > 0)
    text += fmt::format(", {} pictures of the evaluation", format_bytes(evaluation));
  return text + fmt::format(", {} log, chart and buffers", format_bytes(rest));
}

RunMemory::RunMemory(RunSetup& setup, const MultiScale& scale, const TrainSettings& settings,
                     Console& console)
    : setup_(setup),
      scale_(scale),
      settings_(settings),
      console_(console),
      memory_(memory_settings(setup.network.net, settings, console)),
      device_(exec::ModelOptions{}.device),
      meter_(settings.threads, device_) {
  device::keep_heap_small();
  if (!settings.trace_file.empty()) trace_ = std::make_shared<exec::Trace>(kTraceEvents);
  if (memory_.disk_memory > 0) {
    device_ = exec::measure_cpu(settings.threads, room_to_measure());
    exec::measure_disk(device_, memory_.disk_folder, memory_.disk_memory, settings.threads);
  }
  layers::NetSpec& net = setup_.network.net;
  if (memory_.mini_batch > 0) net.subdivisions = net.batch / memory_.mini_batch;
  shapes_.emplace(setup_.network, scale_);
  if (memory_.mini_batch == MemorySettings::kAutoMiniBatch) {
    choose_mini_batch();
  } else {
    plan_first();
  }
  plan_sizes();
  if (setup_.evaluation) plan_evaluation();
  take_memory();
  announce();
}

layers::Network RunMemory::network(NetSize size) const {
  return scale_.is_on() ? layers::resized(setup_.network, static_cast<int>(size.width),
                                          static_cast<int>(size.height))
                        : setup_.network;
}

exec::ModelOptions RunMemory::options(std::int64_t mini_batch, std::int64_t forward_batch) const {
  exec::ModelOptions options{.training = mini_batch > 0,
                             .mini_batch = std::max<std::int64_t>(1, mini_batch),
                             .forward_batch = forward_batch,
                             .threads = settings_.threads,
                             .device = device_};
  options.plan.contention = device_.contention;
  options.plan.op_seconds = device_.op_seconds;
  if (memory_.disk_memory > 0) {
    options.plan.disk_memory = memory_.disk_memory;
    options.plan.disk = device_.disk;
  }
  options.executor = [this](const plan::Program&) {
    return exec::ExecutorOptions{.arena = arena_, .file = file_, .trace = trace_};
  };
  options.shared = shared_;
  return options;
}

Bytes RunMemory::arena_budget() const {
  return std::min(memory_.process_bytes() - beside_.sum(),
                  device::memory_to_map() - address_space_for(beside_));
}

// Measuring takes no more than training may.
Bytes RunMemory::room_to_measure() const {
  constexpr Bytes kLeast = 4_MiB;
  return std::clamp(memory_.process_bytes() - device::resident_memory() - kRest, kLeast, 1_GiB);
}

void RunMemory::measure_beside(std::int64_t images, bool ran) {
  constexpr Bytes kFloat = sizeof(float);
  tidy_up();
  beside_.program = device::resident_memory() + (ran ? 0 : kUnreadCode);
  const NetSize largest = largest_size(scale_);
  const data::SampleMaker& samples = *setup_.samples;
  const data::SampleShape shape =
      samples.shape().at(static_cast<int>(largest.width), static_cast<int>(largest.height));
  if (picture_ < 0) picture_ = picture_bytes(samples.images(), {.channels = shape.channels});
  const auto floats = static_cast<Bytes>(shape.picture_floats() + shape.truth_floats);
  beside_.pictures = data::LoaderSpec{}.queue * images * floats * kFloat +
                     settings_.loader_threads *
                         (data::SampleMaker::kMaxSources * picture_ + samples.scratch_bytes(shape));
  beside_.rest =
      kRest + (scale_.is_on() ? kMoreKernels : 0) + (setup_.evaluation ? kMoreKernels : 0);
  if (!setup_.evaluation) return;
  const layers::Dims input = setup_.network.input();
  beside_.evaluation = kEvaluationQueue * kEvaluationBatch * input.elements() * kFloat +
                       settings_.threads * picture_;
}

// What is known of the ops' times: measured as soon as something has to be decided by them.
void RunMemory::measure_costs(exec::Compiled& compiled) {
  if (!has_measured_device_) {
    has_measured_device_ = true;
    if (memory_.disk_memory == 0) device_ = exec::measure_cpu(settings_.threads, room_to_measure());
    meter_ = exec::CostMeter(settings_.threads, device_, room_to_measure());
  }
  meter_.fill(compiled.selection, compiled.selection.selected);
  meter_.release_memory();
}

bool RunMemory::plan(exec::Compiled& compiled, exec::ModelOptions& options) const {
  options.plan.memory = plan::PlanOptions::kUnlimited;
  exec::make_plan(compiled, options);
  if (compiled.program.arena_bytes <= arena_budget()) return true;
  options.plan.memory = arena_budget();
  if (options.plan.memory <= 0) return false;
  try {
    exec::make_plan(compiled, options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kResource) throw;
    return false;
  }
  return true;
}

bool RunMemory::is_fast(const plan::Program& program, std::optional<double> most) const {
  return !most || slowdown_of(program) <= *most;
}

// Plans a mini-batch at the largest size; false when it does not fit or is too slow.
bool RunMemory::try_first(std::int64_t mini_batch, std::optional<double> most, Attempt& attempt) {
  const NetSize size = largest_size(scale_);
  attempt.network = network(size);
  attempt.options = options(mini_batch, 0);
  attempt.compiled = exec::select(attempt.network, attempt.options);
  const std::int64_t images = shapes_->largest_images();
  const bool limited = memory_.memory.has_value() || has_measured_device_;
  if (limited) measure_costs(attempt.compiled);
  measure_beside(images, limited);
  attempt.fits = plan(attempt.compiled, attempt.options);
  const bool decides =
      !attempt.fits || attempt.options.plan.memory != plan::PlanOptions::kUnlimited;
  if (!limited && decides) {
    measure_costs(attempt.compiled);
    measure_beside(images, true);
    attempt.options = options(mini_batch, 0);
    attempt.fits = plan(attempt.compiled, attempt.options);
  }
  return attempt.fits && is_fast(attempt.compiled.program, most);
}

void RunMemory::keep_first(Attempt& attempt) {
  first_ = key(largest_size(scale_), attempt.options.mini_batch);
  shared_ = exec::state_of(attempt.compiled);
  programs_[first_] = std::move(attempt.compiled.program);
}

void RunMemory::plan_first() {
  const std::int64_t mini_batch = shapes_->mini_batch(0);
  Attempt attempt;
  if (!try_first(mini_batch, memory_.max_slowdown, attempt)) refuse(attempt);
  keep_first(attempt);
}

void RunMemory::choose_mini_batch() {
  layers::NetSpec& net = setup_.network.net;
  const double most = memory_.max_slowdown.value_or(MemorySettings::kUsualSlowdown);
  for (int subdivisions = 1; subdivisions <= net.batch; ++subdivisions) {
    if (net.batch % subdivisions != 0) continue;
    net.subdivisions = subdivisions;
    shapes_.emplace(setup_.network, scale_);
    Attempt attempt;
    if (!try_first(shapes_->mini_batch(0), most, attempt)) {
      if (subdivisions == net.batch) refuse(attempt);
      continue;
    }
    console_.notice(fmt::format(
        "mini_batch=auto: {} images ({} subdivisions of batch={}), predicted {:.1f} % slower than "
        "with unlimited memory",
        net.batch / subdivisions, subdivisions, net.batch,
        100 * slowdown_of(attempt.compiled.program)));
    return keep_first(attempt);
  }
}

// A program for a size and mini-batch, kept when it fits and is fast enough.
bool RunMemory::plan_size(NetSize size, std::int64_t mini_batch, Attempt& attempt) {
  const Key id = key(size, mini_batch);
  if (programs_.contains(id)) return true;
  tidy_up();
  attempt.network = network(size);
  attempt.options = options(mini_batch, 0);
  attempt.compiled = exec::select(attempt.network, attempt.options);
  attempt.fits = plan(attempt.compiled, attempt.options);
  if (!attempt.fits || !is_fast(attempt.compiled.program, memory_.max_slowdown)) return false;
  programs_[id] = std::move(attempt.compiled.program);
  return true;
}

void RunMemory::plan_sizes() {
  if (!scale_.is_on()) return;
  const std::int64_t base = setup_.network.net.batch / setup_.network.net.subdivisions;
  std::vector<NetSize> sizes;
  for (std::int64_t t = 0; t < std::max<std::int64_t>(1, scale_.max_batches);
       t += kIterationsPerSize) {
    if (std::ranges::find(sizes, shapes_->size(t)) == sizes.end())
      sizes.push_back(shapes_->size(t));
  }
  RunShapes::Caps caps;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    console_.progress("planning", static_cast<std::int64_t>(i),
                      static_cast<std::int64_t>(sizes.size()), 0, "sizes");
    const NetSize size = sizes[i];
    Attempt attempt;
    const std::int64_t wanted = shapes_->mini_batch_of(size);
    if (plan_size(size, wanted, attempt)) continue;
    if (wanted <= base) refuse(attempt);
    // dynamic_minibatch: the most that fits, to an eighth of the usual mini-batch.
    if (!plan_size(size, shapes_->mini_batch_of(size, base), attempt)) refuse(attempt);
    std::int64_t good = base;
    std::int64_t bad = wanted * 2;
    while (bad - good > std::max<std::int64_t>(1, base / 8)) {
      const std::int64_t middle = (good + bad) / 2;
      (plan_size(size, shapes_->mini_batch_of(size, middle), attempt) ? good : bad) = middle;
    }
    caps[{size.width, size.height}] = good;
    console_.notice(fmt::format(
        "dynamic_minibatch: {} images at {} x {} instead of {}, that is what the memory holds",
        shapes_->mini_batch_of(size, good), size.width, size.height, wanted));
  }
  if (!caps.empty()) shapes_.emplace(setup_.network, scale_, std::move(caps));
}

void RunMemory::plan_evaluation() {
  for (evaluation_batch_ = kEvaluationBatch;; evaluation_batch_ /= 2) {
    exec::ModelOptions forward = options(0, evaluation_batch_);
    exec::Compiled compiled = exec::select(setup_.network, forward);
    const bool fits = plan(compiled, forward);
    if (fits) {
      evaluation_program_ = std::move(compiled.program);
      return;
    }
    if (evaluation_batch_ == 1) {
      throw Error(ErrorCode::kResource, setup_.network.path,
                  "{} needs {} for one picture beside the parameters and momentum, {} are there: "
                  "give more memory or leave it out",
                  setup_.evaluation->flag(),
                  format_bytes(plan::smallest_memory(compiled.selection.selected, forward.plan)),
                  format_bytes(arena_budget()));
    }
  }
}

void RunMemory::take_memory() {
  Bytes arena = evaluation_program_.arena_bytes;
  Bytes file = evaluation_program_.file_bytes;
  for (const auto& [id, program] : programs_) {
    arena = std::max(arena, program.arena_bytes);
    file = std::max(file, program.file_bytes);
  }
  device::require_memory(arena + beside_.sum(), "this network and its pictures",
                         "use fewer images a mini-batch (more subdivisions)");
  tidy_up();
  arena_ = std::make_shared<device::Arena>(arena);
  if (file == 0) return;
  file_ = settings_.make_file ? settings_.make_file(file)
                              : std::make_shared<device::FileTier>(device::FileTierOptions{
                                    .folder = memory_.disk_folder, .bytes = file});
}

void RunMemory::announce() const {
  const Bytes bound = memory_.process_bytes();
  console_.notice(fmt::format(
      "memory {}: {} for the network, {} beside it ({}); this process may use {}",
      memory_.memory ? format_bytes(bound) : fmt::format("auto, at most {}", format_bytes(bound)),
      format_bytes(arena_->bytes()), format_bytes(beside_.sum()), beside_.text(),
      format_bytes(device::usable_memory())));
  double worst = 0;
  Bytes copied = 0;
  for (const auto& [id, program] : programs_) {
    worst = std::max(worst, slowdown_of(program));
    copied = std::max(copied, program.file_bytes);
  }
  if (worst > 0 || copied > 0) {
    console_.notice(fmt::format(
        "plan: {:.1f} % slower than with unlimited memory, by prediction{}", 100 * worst,
        copied > 0 ? fmt::format("; {} on the disk, in {}", format_bytes(copied), file_->name())
                   : ""));
  } else if (memory_.disk_memory > 0) {
    console_.notice("disk_memory is not needed: everything fits in memory");
  }
}

std::unique_ptr<exec::Model> RunMemory::model(std::int64_t iteration) const {
  tidy_up();
  const NetSize size = shapes_->size(iteration);
  const std::int64_t mini_batch = shapes_->mini_batch(iteration);
  const Key id = key(size, mini_batch);
  exec::ModelOptions model = options(mini_batch, 0);
  if (id == first_) model.shared = {};  // it was made when there was nothing to share
  layers::Network network = this->network(size);
  exec::Compiled compiled = exec::select(network, model);
  compiled.program = programs_.at(id);
  auto made = std::make_unique<exec::Model>(std::move(network), model, std::move(compiled));
  device::return_free_memory();  // what choosing kernels took
  return made;
}

std::unique_ptr<exec::Model> RunMemory::evaluation_model() const {
  tidy_up();
  const exec::ModelOptions model = options(0, evaluation_batch_);
  exec::Compiled compiled = exec::select(setup_.network, model);
  compiled.program = evaluation_program_;
  return std::make_unique<exec::Model>(setup_.network, model, std::move(compiled));
}

void RunMemory::refuse(const Attempt& attempt) {
  if (beside_.pictures > memory_.process_bytes()) {
    throw Error(ErrorCode::kResource, setup_.network.path,
                "the pictures held ready for the network need {}, this process may use {}: a "
                "smaller batch or network size in the cfg needs less",
                format_bytes(beside_.pictures), format_bytes(memory_.process_bytes()));
  }
  refuse_plan({.network = attempt.network,
               .options = attempt.options,
               .compiled = attempt.compiled,
               .fits = attempt.fits,
               .beside = beside_.sum(),
               .budget = arena_budget(),
               .settings = memory_,
               .costs = [this](exec::Compiled& compiled) { measure_costs(compiled); }});
}

}  // namespace lantern::train
