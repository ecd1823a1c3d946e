#include <chrono>

#include "cli/classifier.hpp"
#include "cli/image_input.hpp"
#include "core/error.hpp"
#include "data/loader.hpp"
#include "device/machine.hpp"
#include "eval/class_report.hpp"
#include "train/class_inference.hpp"
#include "train/classifier_setup.hpp"
#include "train/evaluate_classifier.hpp"

namespace lantern::cli {

namespace {

using Clock = std::chrono::steady_clock;

// One run of `classifier predict`.
class PredictRun {
 public:
  PredictRun(const Arguments& arguments, Terminal& terminal)
      : arguments_(arguments),
        terminal_(terminal),
        files_(read_classifier_files(arguments.positionals[0], arguments.positionals[1], terminal)),
        names_(train::read_class_names(
            files_.data_file, files_.data_file.has("names") ? "names" : "labels", files_.classes)),
        results_(names_),
        top_(shown_classes()) {}

  int run() {
    const std::vector<std::string>& words = arguments_.positionals;
    ImageInput input(words.size() > 3 ? words[3] : std::string(), terminal_);
    const auto model = load_for_inference(files_.network, words[2], arguments_, terminal_);
    train::ClassInference inference(*model);
    for (;;) {
      const std::vector<std::string> paths = input.next(inference.batch());
      if (paths.empty() || terminal_.interrupted()) break;
      predict(paths, inference, device::memory_beside(model->executor().arena_bytes()));
    }
    if (arguments_.has("json")) terminal_.print_json(results_.text(), arguments_.text("json"));
    if (terminal_.interrupted()) {
      throw Error(ErrorCode::kInterrupted, "", "interrupted after {} images", total_);
    }
    return bad_images_code(bad_, total_, arguments_, terminal_);
  }

 private:
  // The flag, else the key, else 1; `classify` has a default of its own.
  int shown_classes() const {
    const std::string flag = arguments_.text("t");
    if (flag.empty()) return train::shown_classes(files_.data_file, files_.classes, 1);
    return static_cast<int>(std::min<std::int64_t>(arguments_.integer("t"), files_.classes));
  }

  void predict(const std::vector<std::string>& paths, train::ClassInference& inference,
               Bytes memory_left) {
    const layers::NetSpec& net = files_.network.net;
    data::EvalLoader loader({.images = paths,
                             .eval = train::class_eval_spec(net),
                             .batch = inference.batch(),
                             .threads = loader_threads(arguments_),
                             .decode = {.exif = net.exif == layers::Exif::kApply},
                             .memory_left = memory_left});
    while (const data::EvalBatch* batch = loader.next()) {
      if (terminal_.interrupted()) break;
      const auto count = static_cast<std::int64_t>(batch->items.size());
      const auto before = Clock::now();
      inference.run(batch->images, count);
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - before).count() /
                        static_cast<double>(count);
      for (std::int64_t i = 0; i < count; ++i) {
        const data::EvalItem& item = batch->items[static_cast<std::size_t>(i)];
        tell(paths[static_cast<std::size_t>(item.index)], item, inference.scores(i), ms);
      }
    }
  }

  void tell(const std::string& path, const data::EvalItem& item, std::span<const float> scores,
            double ms) {
    ++total_;
    std::optional<std::string> error;
    if (!item.error.empty()) {
      error = item.error;
      ++bad_;
      terminal_.error(item.error);
    } else {
      const layers::NetSpec& net = files_.network.net;
      terminal_.print(fmt::format("{} {}\n{}: Predicted in {:f} milli-seconds.\n", net.width,
                                  net.height, path, ms) +
                      eval::class_text(scores, names_, top_));
    }
    results_.add(path, item.image_w, item.image_h, scores, top_, error);
  }

  const Arguments& arguments_;
  Terminal& terminal_;
  ClassifierFiles files_;
  std::vector<std::string> names_;
  eval::PredictionsJson results_;
  int top_;
  std::int64_t total_ = 0, bad_ = 0;
};

}  // namespace

int run_classifier_predict(const Arguments& arguments, Terminal& terminal) {
  reserve_json(arguments, terminal);
  watch_interrupts();
  return PredictRun(arguments, terminal).run();
}

int run_classify(const Arguments& arguments, Terminal& terminal) {
  Arguments full = arguments;
  full.positionals.insert(full.positionals.begin(), "cfg/imagenet1k.data");
  return run_classifier_predict(full, terminal);
}

}  // namespace lantern::cli
