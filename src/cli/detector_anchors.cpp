#include <algorithm>
#include <chrono>

#include "cli/detector.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "data/labels.hpp"
#include "eval/anchor_report.hpp"

namespace lantern::cli {

namespace {

// What the cfg says about its [yolo] and [Gaussian_yolo] sections.
struct Heads {
  int width = 0, height = 0;
  std::int64_t seed = 0;
  std::vector<int> strides{};
  std::vector<eval::BoxSize> anchors{};  // of the last one; all share them in a usual cfg
};

Heads heads_of(const std::string& cfg) {
  const layers::Network network =
      layers::load_network_file(cfg, {.batch = 1, .subdivisions = 1, .time_steps = 1});
  Heads heads{.width = network.net.width, .height = network.net.height, .seed = network.net.seed};
  for (const layers::Layer& layer : network.layers) {
    const layers::HeadSpec* head = std::get_if<layers::YoloSpec>(&layer.spec);
    if (head == nullptr) head = std::get_if<layers::GaussianYoloSpec>(&layer.spec);
    if (head == nullptr) continue;
    heads.strides.push_back(
        std::max(1, network.net.width / static_cast<int>(std::max<std::int64_t>(1, layer.in.w))));
    heads.anchors.clear();
    for (std::size_t i = 0; i + 1 < head->anchors.size(); i += 2) {
      heads.anchors.push_back({head->anchors[i], head->anchors[i + 1]});
    }
  }
  if (heads.strides.empty()) {
    throw Error(
        ErrorCode::kInvalidConfig, network.path,
        "error: the cfg has no [yolo] or [Gaussian_yolo] section to find anchors for; leave "
        "it out and give -width and -height");
  }
  return heads;
}

// Without a cfg: the heads of the usual networks with so many anchors.
std::vector<int> usual_strides(std::int64_t clusters) {
  if (clusters >= 9) return {8, 16, 32};  // YOLOv3, v4
  if (clusters == 6) return {16, 32};     // their tiny forms
  return {32};                            // YOLOv2
}

int side(const Arguments& arguments, const char* flag, int of_cfg) {
  const auto given = arguments.given_integer(flag);
  if (!given && of_cfg == 0) {
    throw Error(ErrorCode::kUsage, "",
                "-{} is needed: the size of the network, as in its cfg (or give the cfg: "
                "detector calc_anchors <data> <cfg>)",
                flag);
  }
  return static_cast<int>(given.value_or(of_cfg));
}

data::DataFile read_data(const std::string& path, Terminal& terminal) {
  Diagnostics diagnostics;
  data::DataFile file = data::read_data_file(path, diagnostics);
  for (const Diagnostics::Entry& entry : diagnostics.entries()) {
    terminal.warning(entry.where + ": " + entry.message);
  }
  if (!file.has("train")) {
    throw Error(ErrorCode::kInvalidConfig, path, "has no train= line; add train = LIST");
  }
  return file;
}

constexpr std::int64_t kMostClasses = 100000;  // more is a mistake, and would take the memory

// Boxes by class; `classes` is 0 when the .data file does not say.
std::vector<std::int64_t> count_classes(const data::LabelSet& labels, std::int64_t classes) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes), 0);
  for (std::size_t i = 0; i < labels.labels.size(); ++i) {
    for (const data::Label& label : labels.labels[i]) {
      if (label.class_id < 0 || label.class_id >= kMostClasses) {
        throw Error(ErrorCode::kInvalidData, labels.paths[i],
                    "has class {}; say in the .data file how many there are: classes = N",
                    label.class_id);
      }
      const auto class_id = static_cast<std::size_t>(label.class_id);
      if (class_id >= counts.size()) counts.resize(class_id + 1, 0);
      ++counts[class_id];
    }
  }
  return counts;
}

std::vector<eval::BoxSize> box_sizes(const data::LabelSet& labels, int width, int height) {
  std::vector<eval::BoxSize> boxes;
  for (const std::vector<data::Label>& image : labels.labels) {
    for (const data::Label& label : image) {
      boxes.push_back(
          {static_cast<double>(label.w) * width, static_cast<double>(label.h) * height});
    }
  }
  return boxes;
}

}  // namespace

int run_detector_calc_anchors(const Arguments& arguments, Terminal& terminal) {
  reserve_json(arguments, terminal);
  watch_interrupts();
  Heads heads;
  if (arguments.positionals.size() > 1) heads = heads_of(arguments.positionals[1]);
  eval::AnchorReport report;
  report.width = side(arguments, "width", heads.width);
  report.height = side(arguments, "height", heads.height);
  report.wanted = static_cast<int>(arguments.integer("num_of_clusters"));
  if (!arguments.has("num_of_clusters") && !heads.anchors.empty()) {
    report.wanted = static_cast<int>(heads.anchors.size());
  }
  check_writable("anchors.txt");
  terminal.print(fmt::format("\n num_of_clusters = {}, width = {}, height = {} \n", report.wanted,
                             report.width, report.height));

  const data::DataFile file = read_data(arguments.positionals[0], terminal);
  const data::ImageList list = data::read_image_list(file.file("train"));
  const std::int64_t classes = file.integer("classes", 0);
  if (classes > kMostClasses) {
    throw Error(ErrorCode::kInvalidConfig, file.where("classes"), "classes = {}, want 0 to {}",
                classes, kMostClasses);
  }
  const data::LabelSet labels = data::scan_labels(
      list, {.classes = static_cast<int>(classes), .threads = loader_threads(arguments)});
  terminal.notice(labels.summary());
  const std::vector<eval::BoxSize> boxes = box_sizes(labels, report.width, report.height);
  if (boxes.empty()) {
    throw Error(ErrorCode::kInvalidData, list.path.string(),
                "its {} images have no box that can be used", list.images.size());
  }
  report.class_boxes = count_classes(labels, classes);
  report.images = labels.images;
  report.boxes = static_cast<std::int64_t>(boxes.size());
  report.distinct = eval::distinct_sizes(boxes);
  terminal.print(
      fmt::format(" read labels from {} images \n loaded \t image: {} \t box: {}\n all loaded. "
                  "\n\n calculating "
                  "k-means++ ...\n\n",
                  report.images, report.images, report.boxes));

  const auto start = std::chrono::steady_clock::now();
  const std::vector<eval::BoxSize> anchors = eval::cluster_anchors(
      boxes,
      {.clusters = report.wanted,
       .seed = static_cast<std::uint64_t>(arguments.given_integer("seed").value_or(heads.seed)),
       .restarts = static_cast<int>(arguments.integer("restarts"))},
      [&](std::int64_t done, std::int64_t total) {
        stop_if_interrupted(terminal);
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        terminal.progress("calc_anchors", done, total, static_cast<double>(done) / seconds.count(),
                          "starts/s");
      });
  report.anchors = eval::rounded_anchors(anchors, report.width);
  report.fit = eval::fit_anchors(boxes, report.anchors);
  if (!heads.anchors.empty()) report.cfg_fit = eval::fit_anchors(boxes, heads.anchors);
  report.strides = heads.strides.empty() ? usual_strides(report.wanted) : heads.strides;
  report.masks = eval::propose_masks(report.anchors, report.strides);

  write_file_atomically("anchors.txt", eval::anchors_text(report));
  write_file_atomically("counters_per_class.txt", eval::counters_text(report));
  terminal.print(eval::anchor_report_text(report));
  terminal.notice("Saving anchors to the file: anchors.txt ");
  if (arguments.has("json")) {
    terminal.print_json(eval::anchor_report_json(report), arguments.text("json"));
  }
  return 0;
}

}  // namespace lantern::cli
