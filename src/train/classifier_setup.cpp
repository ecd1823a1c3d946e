#include "train/classifier_setup.hpp"

#include <algorithm>
#include <filesystem>
#include <variant>

#include "core/error.hpp"
#include "core/log.hpp"
#include "data/class_labels.hpp"
#include "data/class_samples.hpp"
#include "train/top_k_evaluation.hpp"

namespace lantern::train {

namespace {

namespace fs = std::filesystem;

bool is_class_loss(const layers::Layer& layer) {
  if (const auto* softmax = std::get_if<layers::SoftmaxSpec>(&layer.spec))
    return softmax->noloss == 0;
  return std::holds_alternative<layers::CostSpec>(layer.spec);
}

data::ClassAugment augment_of(const layers::NetSpec& net, Console& console) {
  if (net.letter_box != 0) {
    console.notice(
        "letter_box is not used by classifiers (as in Darknet): the shorter side is scaled, the "
        "middle is cut out");
  }
  if (net.gaussian_noise != 0) {
    console.notice("gaussian_noise is not used by classifiers (as in Darknet)");
  }
  return {.net_w = net.width,
          .net_h = net.height,
          .channels = net.channels,
          .min_crop = net.min_crop,
          .max_crop = net.max_crop,
          .aspect = net.aspect,
          .angle = net.angle,
          .flip = net.flip != 0,
          .hue = net.hue,
          .saturation = net.saturation,
          .exposure = net.exposure,
          .mix = data::class_mix(net.mixup, net.cutmix != 0, net.mosaic != 0),
          .blur = net.blur};
}

}  // namespace

int classes_of_classifier(const layers::Network& network, const data::DataFile& file) {
  const auto detection = std::ranges::find_if(network.layers, [](const layers::Layer& layer) {
    return layers::detection_keys(layer).has_value();
  });
  if (detection != network.layers.end()) {
    throw Error(ErrorCode::kInvalidConfig, detection->where,
                "error: [{}] makes this network a detector; use `lantern detector`",
                detection->section);
  }
  for (const layers::Layer& layer : network.layers) {
    const auto* softmax = std::get_if<layers::SoftmaxSpec>(&layer.spec);
    if (softmax == nullptr || softmax->tree.empty()) continue;
    throw Error(ErrorCode::kInvalidConfig, layer.where,
                "error: [softmax] tree is not supported by the classifier verbs: images have one "
                "class, no ancestors; remove the key");
  }
  const std::int64_t classes = file.integer("classes", 2, 1);
  const layers::Layer& last = network.layers.back();
  if (last.out.elements() != classes) {
    throw Error(ErrorCode::kInvalidConfig, last.where,
                "error: [{}] gives {} numbers, {} has classes={}{}: set filters= or output= of "
                "the layer before it to the number of classes",
                last.section, last.out.elements(), file.where("classes"), classes,
                file.has("classes") ? "" : " (the default)");
  }
  return static_cast<int>(classes);
}

int shown_classes(const data::DataFile& file, int classes, int otherwise) {
  return static_cast<int>(std::min<std::int64_t>(file.integer("top", otherwise, 1), classes));
}

std::vector<std::string> read_class_names(const data::DataFile& file, const std::string& key,
                                          int classes) {
  const fs::path path = file.file(key, key == "labels" ? kUsualLabels : "data/names.list");
  std::vector<std::string> names = data::read_names(path);
  if (std::cmp_not_equal(names.size(), classes)) {
    throw Error(ErrorCode::kInvalidData, path.string(), "holds {} {}, {} has classes={}",
                names.size(), key, file.where("classes"), classes);
  }
  return names;
}

RunSetup set_up_classifier(const TrainSettings& settings, Console& console) {
  Diagnostics diagnostics;
  RunSetup run = read_run_files(settings, console, diagnostics);
  const layers::NetSpec& net = run.network.net;
  run.kind = NetworkKind::kClassifier;
  run.classes = classes_of_classifier(run.network, run.data_file);
  for (const layers::Layer& layer : run.network.layers) {
    if (!is_class_loss(layer) || layer.in.elements() == run.classes) continue;
    throw Error(ErrorCode::kInvalidConfig, layer.where,
                "error: [{}] has {} inputs, but the truth of an image is one number for each of {} "
                "classes; only the last layers of a classifier can have a loss{}",
                layer.section, layer.in.elements(), run.classes,
                layer.section == "softmax" ? " (noloss=1 takes it away)" : "");
  }
  if (std::ranges::none_of(run.network.layers, is_class_loss)) {
    throw Error(ErrorCode::kInvalidConfig, run.network.path,
                "error: a classifier needs a [softmax] or [cost] layer at its end to be trained");
  }
  run.names = read_class_names(run.data_file, "labels", run.classes);
  const fs::path labels_path = run.data_file.file("labels", kUsualLabels);
  diagnostics.throw_if_errors(ErrorCode::kInvalidConfig);
  for (const Diagnostics::Entry& entry : diagnostics.entries())
    log::warning("{}: {}", entry.where, entry.message);
  prepare_output(run, settings, console);

  const data::ClassMatcher matcher(run.names, labels_path);
  const double limit = static_cast<double>(net.bad_data_limit) / 100;
  const auto read = [&](const fs::path& list) {
    data::ClassSet set = data::read_class_list(list, matcher);
    console.notice(set.summary(run.names));
    data::check_class_limit(set, limit, settings.strict);
    return set;
  };
  const fs::path train_list = run.data_file.file("train", kUsualClassList);
  data::ClassSet set = read(train_list);
  if (settings.topk) {
    data::ClassSet valid = set;
    if (run.data_file.has("valid")) {
      valid = read(run.data_file.file("valid"));
    } else {
      log::warning("{} has no valid= line: the train list is used for -topk", settings.data_file);
    }
    check_some_image_exists(valid.list, valid.images, "-topk");
    run.evaluation = std::make_shared<TopKEvaluation>(
        std::move(valid), shown_classes(run.data_file, run.classes, 5), net.burn_in,
        static_cast<double>(set.images.size()) / static_cast<double>(net.batch), settings.threads);
  }
  run.samples = std::make_shared<data::ClassSamples>(
      std::move(set), run.classes, net.label_smooth_eps, augment_of(net, console));
  run.save_weights = run.data_file.integer("saveweights", 1000, 1);
  run.save_last = run.data_file.integer("savelast", 100, 1);
  return run;
}

}  // namespace lantern::train
