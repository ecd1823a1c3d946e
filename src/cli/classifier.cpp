#include "cli/classifier.hpp"

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

int validate(const Arguments& arguments, Terminal& terminal, data::EvalView view,
             const std::string& view_name) {
  reserve_json(arguments, terminal);
  watch_interrupts();
  const ClassifierFiles files =
      read_classifier_files(arguments.positionals[0], arguments.positionals[1], terminal);
  const data::DataFile& data = files.data_file;
  const std::vector<std::string> labels = train::read_class_names(data, "labels", files.classes);
  const data::ClassMatcher matcher(labels, data.file("labels", train::kUsualLabels));
  const data::ClassSet set = data::read_class_list(validation_list(data, terminal), matcher);
  terminal.notice(set.summary(labels));
  const auto model =
      load_for_inference(files.network, arguments.positionals[2], arguments, terminal);

  eval::ValidationJson json(labels);
  std::int64_t done = 0;
  const train::ClassEvaluationResult result = train::evaluate_classifier(
      *model, set,
      {.view = view,
       .top = train::shown_classes(data, files.classes, 1),
       .threads = loader_threads(arguments),
       .each =
           [&](std::size_t index, std::span<const float> scores, const eval::TopK& so_far) {
             terminal.print(fmt::format("{}: top 1: {:f}, top {}: {:f}\n", done++, so_far.top1(),
                                        so_far.k(), so_far.topk()));
             if (arguments.has("json")) json.add(set.images[index], set.classes[index], scores);
           },
       .progress =
           [&](std::int64_t images, std::int64_t total, double rate) {
             stop_if_interrupted(terminal);
             terminal.progress("valid", images, total, rate, "images/s");
           }});
  for (const train::BadImage& bad : result.bad_images) terminal.error(bad.reason);
  const auto left_out = static_cast<std::int64_t>(result.bad_images.size() + set.issues.size());
  terminal.notice(fmt::format("Total Classification Time: {:.0f} Seconds", result.seconds));
  if (arguments.has("json")) {
    terminal.print_json(json.text(result.accuracy, view_name, left_out), arguments.text("json"));
  }
  return bad_images_code(left_out, set.listed, arguments, terminal);
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

}  // namespace lantern::cli
