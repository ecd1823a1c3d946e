#include "eval/valid_writers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>

#include "core/error.hpp"
#include "eval/json_string.hpp"

namespace lantern::eval {
namespace {

/// COCO numbers its 80 classes 1 .. 90 with gaps (instances_val2017.json, "categories").
constexpr std::array<int, 80> kCocoCategories{
    1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 27, 28, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44,
    46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65,
    67, 70, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 84, 85, 86, 87, 88, 89, 90};
constexpr std::array<std::string_view, 10> kBddNames{
    "bike",  "bus",   "car",           "motor",        "person",
    "rider", "train", "traffic light", "traffic sign", "truck"};
constexpr std::array<std::string_view, 3> kKittiNames{"car", "pedestrian", "cyclist"};

/// Edges in pixels, clipped to [low, size - 1 + low] ... [low, size]: `offset` is added before
/// clipping.
struct Edges {
  float left, top, right, bottom;
};

Edges edges_of(const Box& box, ImageSize image, float offset) {
  const auto width = static_cast<float>(image.width);
  const auto height = static_cast<float>(image.height);
  const auto clip = [&](float value, float limit) {
    return std::isfinite(value) ? std::clamp(value + offset, offset, std::max(limit, offset))
                                : offset;
  };
  return {clip(box.left() * width, width), clip(box.top() * height, height),
          clip(box.right() * width, width), clip(box.bottom() * height, height)};
}

/// Calls use(detection, class, probability) for every probability above 0.
template <typename Use>
void for_each_pair(const DetectionList& list, std::size_t classes, Use use) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::span<const float> probabilities = list.probabilities(i);
    for (std::size_t c = 0; c < std::min(probabilities.size(), classes); ++c) {
      if (probabilities[c] > 0) use(list[i], c, probabilities[c]);
    }
  }
}

std::string up_to_first_dot(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.substr(0, name.find('.'));
}

class VocWriter final : public ValidWriter {
 public:
  explicit VocWriter(ValidOptions options) : options_(std::move(options)) {
    texts_.resize(options_.names.size());
    if (options_.name.empty()) options_.name = "comp4_det_test_";
    for (const std::string& name : options_.names) {
      if (name.empty() || name.find('/') != std::string::npos) {
        throw Error(ErrorCode::kInvalidData, "",
                    "class name '{}' cannot be part of a file name, as the voc format wants", name);
      }
    }
  }

  void add_image(const std::filesystem::path& path, ImageSize size,
                 const DetectionList& detections) override {
    const std::string id = up_to_first_dot(path);
    for_each_pair(detections, texts_.size(), [&](const Detection& d, std::size_t c, float p) {
      const Edges edges = edges_of(d.box, size, 1);
      fmt::format_to(std::back_inserter(texts_[c]), "{} {:f} {:f} {:f} {:f} {:f}\n", id, p,
                     edges.left, edges.top, edges.right, edges.bottom);
    });
  }

  void finish() override {
    for (std::size_t c = 0; c < texts_.size(); ++c) {
      write_file_atomically(options_.folder / (options_.name + options_.names[c] + ".txt"),
                            texts_[c]);
    }
  }

 private:
  ValidOptions options_;
  // One text a class and not one open file: nets with thousands of classes exceed the limit of open
  // files.
  std::vector<std::string> texts_;
};

/// Array of objects, valid also when empty.
class JsonArrayFile {
 public:
  explicit JsonArrayFile(const std::filesystem::path& path) : file_(path) { file_.write("["); }
  void add(std::string_view object) {
    file_.write(first_ ? "\n" : ",\n");
    first_ = false;
    file_.write(object);
  }
  void finish() {
    file_.write("\n]\n");
    file_.commit();
  }

 private:
  AtomicFile file_;
  bool first_ = true;
};

std::filesystem::path file_in(const ValidOptions& options, std::string_view name,
                              std::string_view extension) {
  return options.folder /
         ((options.name.empty() ? std::string(name) : options.name) + std::string(extension));
}

class CocoWriter final : public ValidWriter {
 public:
  explicit CocoWriter(const ValidOptions& options)
      : categories_(options.categories), file_(file_in(options, "coco_results", ".json")) {
    if (categories_.empty()) {
      categories_.assign(kCocoCategories.begin(), kCocoCategories.end());
    }
  }

  void add_image(const std::filesystem::path& path, ImageSize size,
                 const DetectionList& detections) override {
    const std::optional<std::int64_t> id = coco_image_id(path);
    if (!id) {
      throw Error(ErrorCode::kInvalidData, path.string(),
                  "has no image number in its name, which the coco format needs (000000000139.jpg "
                  "or COCO_val2014_000000000139.jpg)");
    }
    for_each_pair(detections, categories_.size(), [&](const Detection& d, std::size_t c, float p) {
      const Edges edges = edges_of(d.box, size, 0);
      file_.add(
          fmt::format("{{\"image_id\":{}, \"category_id\":{}, \"bbox\":[{:f}, {:f}, {:f}, "
                      "{:f}], \"score\":{:f}}}",
                      *id, categories_[c], edges.left, edges.top, edges.right - edges.left,
                      edges.bottom - edges.top, p));
    });
  }

  void finish() override { file_.finish(); }

 private:
  std::vector<int> categories_;
  JsonArrayFile file_;
};

class ImagenetWriter final : public ValidWriter {
 public:
  explicit ImagenetWriter(const ValidOptions& options)
      : classes_(options.names.size()), file_(file_in(options, "imagenet-detection", ".txt")) {}

  void add_image(const std::filesystem::path&, ImageSize size,
                 const DetectionList& detections) override {
    ++index_;
    for_each_pair(detections, classes_, [&](const Detection& d, std::size_t c, float p) {
      const Edges edges = edges_of(d.box, size, 0);
      file_.write(fmt::format("{} {} {:f} {:f} {:f} {:f} {:f}\n", index_, c + 1, p, edges.left,
                              edges.top, edges.right, edges.bottom));
    });
  }

  void finish() override { file_.commit(); }

 private:
  std::size_t classes_;
  std::int64_t index_ = 0;
  AtomicFile file_;
};

class BddWriter final : public ValidWriter {
 public:
  explicit BddWriter(const ValidOptions& options)
      : file_(file_in(options, "bdd_results", ".json")) {}

  void add_image(const std::filesystem::path& path, ImageSize size,
                 const DetectionList& detections) override {
    const std::string name = json_string(path.stem().string());
    for_each_pair(detections, kBddNames.size(), [&](const Detection& d, std::size_t c, float p) {
      const Edges edges = edges_of(d.box, size, 0);
      file_.add(fmt::format(
          "{{\"name\":{}, \"category\":{}, \"bbox\":[{:f}, {:f}, {:f}, {:f}], "
          "\"score\":{:f}}}",
          name, json_string(kBddNames[c]), edges.left, edges.top, edges.right, edges.bottom, p));
    });
  }

  void finish() override { file_.finish(); }

 private:
  JsonArrayFile file_;
};

class KittiWriter final : public ValidWriter {
 public:
  explicit KittiWriter(const ValidOptions& options)
      : folder_(options.folder / (options.name.empty() ? "kitti_results" : options.name) / "data") {
    std::error_code code;
    std::filesystem::create_directories(folder_, code);
    if (code) {
      throw Error(ErrorCode::kResource, folder_.string(), "cannot be made: {}", code.message());
    }
  }

  void add_image(const std::filesystem::path& path, ImageSize size,
                 const DetectionList& detections) override {
    std::string text;
    for_each_pair(detections, kKittiNames.size(), [&](const Detection& d, std::size_t c, float p) {
      const Edges edges = edges_of(d.box, size, 0);
      fmt::format_to(std::back_inserter(text),
                     "{} -1 -1 -10 {:f} {:f} {:f} {:f} -1 -1 -1 -1000 -1000 -1000 -10 {:f}\n",
                     kKittiNames[c], edges.left, edges.top, edges.right, edges.bottom, p);
    });
    texts_.insert_or_assign(up_to_first_dot(path), std::move(text));
  }

  void finish() override {
    for (const auto& [id, text] : texts_) write_file_atomically(folder_ / (id + ".txt"), text);
  }

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::string> texts_;
};

void check_class_count(std::string_view format, std::size_t classes, std::size_t limit) {
  if (classes > limit) {
    throw Error(ErrorCode::kInvalidConfig, "",
                "eval={} has {} classes, the network {}; use eval=voc{}", format, limit, classes,
                format == "coco" ? " or name the category of every class" : "");
  }
}

std::optional<std::int64_t> leading_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || text.empty() || text[0] == '-') return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::int64_t> coco_image_id(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  if (const auto number = leading_number(name)) return number;
  const std::size_t place = name.rfind('_');
  if (place == std::string::npos) return std::nullopt;
  return leading_number(std::string_view(name).substr(place + 1));
}

std::unique_ptr<ValidWriter> make_valid_writer(std::string_view format, ValidOptions options) {
  std::error_code code;
  if (!std::filesystem::is_directory(options.folder, code)) {
    throw Error(ErrorCode::kResource, options.folder.string(),
                "is no folder; make it, or name another with results= in the .data file");
  }
  const std::size_t classes = options.names.size();
  if (format == "voc") return std::make_unique<VocWriter>(std::move(options));
  if (format == "coco") {
    check_class_count(
        format, classes,
        options.categories.empty() ? kCocoCategories.size() : options.categories.size());
    return std::make_unique<CocoWriter>(options);
  }
  if (format == "imagenet") {
    check_class_count(format, classes, 200);
    return std::make_unique<ImagenetWriter>(options);
  }
  if (format == "bdd") {
    check_class_count(format, classes, kBddNames.size());
    return std::make_unique<BddWriter>(options);
  }
  if (format == "kitti") {
    check_class_count(format, classes, kKittiNames.size());
    return std::make_unique<KittiWriter>(options);
  }
  throw Error(ErrorCode::kInvalidConfig, "",
              "eval={} is not known; want voc, coco, imagenet, bdd or kitti", format);
}

}  // namespace lantern::eval
