#include "cli/classifier.hpp"

#include <array>
#include <utility>

#include "cli/training.hpp"
#include "core/error.hpp"
#include "data/class_labels.hpp"
#include "eval/class_report.hpp"
#include "train/classifier_setup.hpp"
#include "train/evaluate_classifier.hpp"
#include "train/trainer.hpp"

namespace lantern::cli {

ClassifierFiles read_classifier_files(const std::string& data_path, const std::string& cfg_path,
                                      Terminal& terminal) {
  ClassifierFiles files;
  files.network =
      layers::load_network_file(cfg_path, {.batch = 1, .subdivisions = 1, .time_steps = 1});
  Diagnostics diagnostics;
  files.data_file = data::read_data_file(data_path, diagnostics);
  files.classes = train::classes_of_classifier(files.network, files.data_file);
  for (const Diagnostics::Entry& entry : diagnostics.entries()) {
    terminal.warning(entry.where + ": " + entry.message);
  }
  return files;
}

int run_classifier_train(const Arguments& arguments, Terminal& terminal) {
  train::TrainSettings settings = read_train_settings(arguments);
  settings.topk = arguments.has("topk");
  return run_training(train::train_classifier, settings, arguments, terminal);
}

namespace {

// What every kind of validation begins with.
struct Validation {
  Validation(const Arguments& arguments, Terminal& terminal)
      : files(read_classifier_files(arguments.positionals[0], arguments.positionals[1], terminal)),
        labels(train::read_class_names(files.data_file, "labels", files.classes)),
        set(data::read_class_list(
            validation_list(files.data_file, terminal),
            data::ClassMatcher(labels, files.data_file.file("labels", train::kUsualLabels)))),
        top(train::shown_classes(files.data_file, files.classes, 1)),
        json(labels) {
    terminal.notice(set.summary(labels));
  }

  train::ClassEvaluationResult run(exec::Model& model, data::EvalView view,
                                   const Arguments& arguments, Terminal& terminal,
                                   decltype(train::ClassEvaluation::each) each) const {
    return train::evaluate_classifier(
        model, set,
        {.view = view,
         .top = top,
         .threads = loader_threads(arguments),
         .each = std::move(each),
         .progress = [&](std::int64_t images, std::int64_t total, double rate) {
           stop_if_interrupted(terminal);
           terminal.progress("valid", images, total, rate, "images/s");
         }});
  }

  // The line of an image, and its entry of the JSON.
  void tell(std::size_t index, std::span<const float> scores, const eval::TopK& so_far,
            const Arguments& arguments, Terminal& terminal) {
    terminal.print(fmt::format("{}: top 1: {:f}, top {}: {:f}\n", done++, so_far.top1(), so_far.k(),
                               so_far.topk()));
    if (arguments.has("json")) json.add(set.images[index], set.classes[index], scores);
  }

  // What all end with; the exit code.
  int end(const eval::TopK& accuracy, const std::vector<train::BadImage>& bad_images,
          double seconds, const std::string& view_name, const Arguments& arguments,
          Terminal& terminal) {
    for (const train::BadImage& bad : bad_images) terminal.error(bad.reason);
    const auto left_out = static_cast<std::int64_t>(bad_images.size() + set.issues.size());
    terminal.notice(fmt::format("Total Classification Time: {:.0f} Seconds", seconds));
    if (arguments.has("json")) {
      terminal.print_json(json.text(accuracy, view_name, left_out), arguments.text("json"));
    }
    return bad_images_code(left_out, set.listed, arguments, terminal);
  }

  ClassifierFiles files;
  std::vector<std::string> labels;
  data::ClassSet set;
  int top = 1;
  eval::ValidationJson json;
  std::int64_t done = 0;
};

int validate(const Arguments& arguments, Terminal& terminal, data::EvalView view,
             const std::string& view_name) {
  reserve_json(arguments, terminal);
  watch_interrupts();
  Validation validation(arguments, terminal);
  const auto model =
      load_for_inference(validation.files.network, arguments.positionals[2], arguments, terminal);
  const train::ClassEvaluationResult result = validation.run(
      *model, view, arguments, terminal,
      [&](std::size_t index, std::span<const float> scores, const eval::TopK& so_far) {
        validation.tell(index, scores, so_far, arguments, terminal);
      });
  return validation.end(result.accuracy, result.bad_images, result.seconds, view_name, arguments,
                        terminal);
}

}  // namespace

int run_classifier_valid(const Arguments& arguments, Terminal& terminal) {
  return validate(arguments, terminal, data::EvalView::kCentreCrop, "centre_crop");
}

int run_classifier_valid10(const Arguments& arguments, Terminal& terminal) {
  return validate(arguments, terminal, data::EvalView::kTenCrops, "ten_crops");
}

int run_classifier_validcrop(const Arguments& arguments, Terminal& terminal) {
  return validate(arguments, terminal, data::EvalView::kWhole, "stretched");
}

// reference/training.md 16.5: five sizes, plain and mirrored; the scores of an image are summed.
int run_classifier_validmulti(const Arguments& arguments, Terminal& terminal) {
  constexpr std::array kSides{224, 288, 320, 352, 384};
  reserve_json(arguments, terminal);
  watch_interrupts();
  Validation validation(arguments, terminal);
  const layers::NetSpec& net = validation.files.network.net;
  const auto classes = static_cast<std::size_t>(validation.files.classes);
  std::vector<float> sums(validation.set.images.size() * classes);
  std::vector<bool> is_seen(validation.set.images.size());
  std::vector<train::BadImage> bad_images;
  double seconds = 0;
  for (const int side : kSides) {
    const layers::Network network =
        layers::resized(validation.files.network, side, side * net.height / net.width);
    const auto model = load_for_inference(network, arguments.positionals[2], arguments, terminal);
    train::ClassEvaluationResult result =
        validation.run(*model, data::EvalView::kCentreCropAndMirrored, arguments, terminal,
                       [&](std::size_t index, std::span<const float> scores, const eval::TopK&) {
                         is_seen[index] = true;
                         for (std::size_t c = 0; c < classes; ++c)
                           sums[index * classes + c] += scores[c];
                       });
    seconds += result.seconds;
    bad_images = std::move(result.bad_images);  // the same at every size
  }
  eval::TopK accuracy(validation.files.classes, validation.top);
  for (std::size_t i = 0; i < is_seen.size(); ++i) {
    if (!is_seen[i]) continue;
    std::span<float> scores = std::span(sums).subspan(i * classes, classes);
    for (float& score : scores) score /= static_cast<float>(kSides.size());
    accuracy.add(scores, validation.set.classes[i]);
    validation.tell(i, scores, accuracy, arguments, terminal);
  }
  return validation.end(accuracy, bad_images, seconds, "five_sizes", arguments, terminal);
}

}  // namespace lantern::cli
