#include <unistd.h>

#include <chrono>
#include <set>
#include <utility>

#include "cli/detector.hpp"
#include "cli/image_input.hpp"
#include "cli/saved_labels.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "data/image.hpp"
#include "data/loader.hpp"
#include "device/machine.hpp"
#include "draw/picture.hpp"
#include "eval/inference.hpp"
#include "eval/results.hpp"

namespace lantern::cli {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kPictureQuality = 80;  // of predictions.jpg, as Darknet writes it

// "dog: 0.98, cat": best class with its probability, then the others above the threshold.
std::string box_label(const eval::DetectionList& list, std::size_t i,
                      std::span<const std::string> names, float threshold) {
  const int best = list.best_class(i);
  const auto name_of = [&](int c) { return names[static_cast<std::size_t>(c)]; };
  std::string label;
  if (!name_of(best).starts_with("dont_show")) {
    label = fmt::format("{}: {:.2f}", name_of(best), list.best_probability(i));
  }
  for (int c = 0; c < list.classes(); ++c) {
    if (c == best || !(list.probabilities(i)[static_cast<std::size_t>(c)] > threshold)) continue;
    if (name_of(c).starts_with("dont_show")) continue;
    label += label.empty() ? name_of(c) : ", " + name_of(c);
  }
  return label;
}

// Number of the layer kind in Darknet's list: [detection], [region], [yolo], [Gaussian_yolo].
int darknet_kind(const layers::HeadBinding& head) {
  if (head.detection) return 6;
  if (head.region) return 27;
  return head.gaussian ? 29 : 28;
}

// One run of `detector test`: where its results go.
class TestRun {
 public:
  TestRun(const Arguments& arguments, Terminal& terminal)
      : arguments_(arguments),
        terminal_(terminal),
        threshold_(static_cast<float>(arguments.number("thresh"))),
        files_(read_detector_files(arguments.positionals[0], arguments.positionals[1], terminal)),
        letter_box_(arguments.has("letter_box") || files_.network.net.letter_box != 0),
        out_dir_(arguments.text("out_dir")) {
    if (!out_dir_.empty()) {
      std::error_code code;
      fs::create_directories(out_dir_, code);
      if (code) {
        throw Error(ErrorCode::kResource, out_dir_.string(), "cannot be made: {}", code.message());
      }
    }
    if (arguments.has("save_labels")) {
      labels_.emplace(arguments.text("label_dir"), arguments.has("force"));
    }
    if (arguments.has("out")) out_file_.emplace(arguments.text("out"));
  }

  int run() {
    const std::vector<std::string>& words = arguments_.positionals;
    ImageInput input(words.size() > 3 ? words[3] : std::string(), terminal_);
    model_ = load_for_inference(files_.network, words[2], arguments_, terminal_);
    inference_.emplace(*model_);
    for (;;) {
      const std::vector<std::string> paths = input.next(inference_->batch());
      if (paths.empty() || terminal_.interrupted()) break;
      detect(paths);
    }
    if (labels_) labels_->finish();
    if (out_file_) out_file_->finish();
    if (arguments_.has("json")) terminal_.print_json(results_.text(), arguments_.text("json"));
    if (terminal_.interrupted()) {
      throw Error(ErrorCode::kInterrupted, "", "interrupted after {} images", total_);
    }
    return bad_images_code(bad_, total_, arguments_, terminal_);
  }

 private:
  void detect(const std::vector<std::string>& paths) {
    const layers::NetSpec& net = files_.network.net;
    data::EvalLoader loader(
        {.images = paths,
         .eval = {.net_w = net.width,
                  .net_h = net.height,
                  .channels = net.channels,
                  .letter_box = letter_box_},
         .batch = inference_->batch(),
         .threads = loader_threads(arguments_),
         .decode = {.exif = exif()},
         .memory_left = device::memory_beside(model_->executor().arena_bytes())});
    const auto start = Clock::now();
    std::int64_t done = 0;
    while (const data::EvalBatch* batch = loader.next()) {
      if (terminal_.interrupted()) break;
      const auto count = static_cast<std::int64_t>(batch->items.size());
      const auto before = Clock::now();
      inference_->run(batch->images, count);
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - before).count() /
                        static_cast<double>(count);
      for (std::int64_t i = 0; i < count; ++i) {
        const data::EvalItem& item = batch->items[static_cast<std::size_t>(i)];
        tell(paths[static_cast<std::size_t>(item.index)], item, i, ms);
      }
      done += count;
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (paths.size() > 1) {
        terminal_.progress("test", done, static_cast<std::int64_t>(paths.size()),
                           static_cast<double>(done) / seconds, "images/s");
      }
    }
    draw_last();
  }

  // The results of one image, to every place that was asked for.
  void tell(const std::string& path, const data::EvalItem& item, std::int64_t place, double ms) {
    ++total_;
    const eval::ImageSize size{item.image_w, item.image_h};
    eval::DetectionList list(files_.classes);
    std::optional<std::string> error;
    if (!item.error.empty()) {
      error = item.error;
      ++bad_;
      terminal_.error(item.error);
    } else {
      eval::Inference::Options options{.threshold = threshold_};
      if (letter_box_) options.letterboxed_image = {item.image_w, item.image_h};
      list = inference_->detections(place, options);
      std::string text;
      for (const layers::HeadBinding& head : model_->lowered().heads) {
        text += fmt::format(" Detection layer: {} - type = {} \n", head.layer, darknet_kind(head));
      }
      text += fmt::format("{}: Predicted in {:f} milli-seconds.\n", path, ms);
      text +=
          eval::detections_text(list, files_.names, size, threshold_, arguments_.has("ext_output"));
      terminal_.print(text);
      if (labels_) labels_->write(path, list, threshold_);
      if (!out_dir_.empty()) {
        draw(path, list, out_dir_ / picture_name(path));
      } else {
        last_path_ = path;
        last_list_ = list;
      }
    }
    results_.add(path, size, list, files_.names, threshold_, error);
    if (out_file_) {
      out_file_->add(eval::output_object(
          {.frame_id = total_, .filename = path, .size = size, .error = error, .milliseconds = ms},
          list, files_.names, arguments_.has("json_extended")));
    }
  }

  // predictions.jpg shows one image, the last: drawn once for all images known together.
  void draw_last() {
    if (last_path_.empty()) return;
    if (access(".", W_OK) == 0) {
      draw(last_path_, last_list_, "predictions.jpg");
    } else if (!std::exchange(picture_refused_, true)) {
      // Nobody asked for this file: a working directory that cannot be written costs no results.
      terminal_.warning("predictions.jpg is not drawn: the working directory cannot be written");
    }
    last_path_.clear();
  }

  void draw(const std::string& path, const eval::DetectionList& list, const fs::path& to) {
    data::Image image = data::load_image(path, {.channels = 3, .exif = exif()});
    std::vector<draw::LabelledBox> boxes;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!(list.best_probability(i) > threshold_)) continue;
      std::string label = box_label(list, i, files_.names, threshold_);
      if (label.empty()) continue;
      const eval::Box& box = list[i].box;
      boxes.push_back({box.x, box.y, box.w, box.h, list.best_class(i), std::move(label)});
    }
    draw::draw_detections({image.w, image.h, image.pixels}, boxes, files_.classes);
    const std::vector<std::byte> bytes = data::encode_jpeg(image, kPictureQuality);
    AtomicFile file(to);
    file.write(std::span<const std::byte>(bytes));
    file.commit();
  }

  // The image's own name; a second image of that name gets a number.
  std::string picture_name(const std::string& path) {
    const std::string stem = fs::path(path).stem().string();
    std::string name = stem + ".jpg";
    for (int n = 2; !used_names_.insert(name).second; ++n) name = fmt::format("{}_{}.jpg", stem, n);
    return name;
  }

  bool exif() const { return files_.network.net.exif == layers::Exif::kApply; }

  const Arguments& arguments_;
  Terminal& terminal_;
  float threshold_;
  DetectorFiles files_;
  bool letter_box_;
  fs::path out_dir_;
  std::unique_ptr<exec::Model> model_;
  std::optional<eval::Inference> inference_;
  std::optional<SavedLabels> labels_;
  std::optional<eval::OutputJsonFile> out_file_;
  eval::ResultsJson results_;
  std::set<std::string> used_names_;
  std::string last_path_;
  eval::DetectionList last_list_;
  std::int64_t total_ = 0, bad_ = 0;
  bool picture_refused_ = false;
};

}  // namespace

int run_detector_test(const Arguments& arguments, Terminal& terminal) {
  reserve_json(arguments, terminal);
  watch_interrupts();
  return TestRun(arguments, terminal).run();
}

int run_detect(const Arguments& arguments, Terminal& terminal) {
  Arguments full = arguments;
  full.positionals.insert(full.positionals.begin(), "cfg/coco.data");
  return run_detector_test(full, terminal);
}

}  // namespace lantern::cli
