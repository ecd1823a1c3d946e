#include "eval/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "core/error.hpp"
#include "eval/json_string.hpp"

namespace lantern::eval {
namespace {

std::string name_of(std::span<const std::string> names, int class_id) {
  const auto index = static_cast<std::size_t>(class_id);
  return index < names.size() ? names[index] : std::to_string(class_id);
}

/// JSON knows neither nan nor inf.
double finite(double value) { return std::isfinite(value) ? value : 0; }

/// Rounded to whole pixels, never "-0".
double pixel(float value) { return std::round(value) + 0.0; }

struct Pair {
  std::size_t detection;
  int class_id;
  float confidence;
};

/// (detection, class) pairs above the threshold, confidence descending, equal ones in list order.
std::vector<Pair> pairs_above(const DetectionList& list, float threshold) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::span<const float> probabilities = list.probabilities(i);
    for (int c = 0; c < list.classes(); ++c) {
      const float probability = probabilities[static_cast<std::size_t>(c)];
      if (probability > threshold) pairs.push_back({i, c, probability});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.confidence > b.confidence; });
  return pairs;
}

}  // namespace

std::string detections_text(const DetectionList& detections, std::span<const std::string> names,
                            ImageSize image, float threshold, bool extended,
                            std::span<const int> track_ids) {
  LANTERN_ASSERT(track_ids.empty() || track_ids.size() == detections.size(),
                 "one track id an element of the list");
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < detections.size(); ++i) {
    if (detections.best_probability(i) > threshold && std::isfinite(detections[i].box.left())) {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return detections[a].box.left() < detections[b].box.left();
  });
  std::string text;
  const auto out = std::back_inserter(text);
  for (const std::size_t i : order) {
    std::vector<int> classes{detections.best_class(i)};
    const std::span<const float> probabilities = detections.probabilities(i);
    for (int c = 0; c < detections.classes(); ++c) {
      if (c != classes[0] && probabilities[static_cast<std::size_t>(c)] > threshold) {
        classes.push_back(c);
      }
    }
    for (const int c : classes) {
      const std::string name = name_of(names, c);
      if (name.starts_with("dont_show")) continue;
      fmt::format_to(out, "{}: {:.0f}%", name, 100 * probabilities[static_cast<std::size_t>(c)]);
      if (!track_ids.empty()) fmt::format_to(out, " (track_id = {})", track_ids[i]);
      if (extended) {
        const Box& box = detections[i].box;
        const auto width = static_cast<float>(image.width);
        const auto height = static_cast<float>(image.height);
        fmt::format_to(out,
                       "\t(left_x: {:4.0f}   top_y: {:4.0f}   width: {:4.0f}   height: {:4.0f})",
                       pixel(box.left() * width), pixel(box.top() * height), pixel(box.w * width),
                       pixel(box.h * height));
      }
      text += '\n';
    }
  }
  return text;
}

std::string output_object(const OutputImage& image, const DetectionList& detections,
                          std::span<const std::string> names, bool extended, float threshold) {
  // The blanks at the line ends are Darknet's; scripts compare these files byte by byte.
  std::string text = fmt::format("{{\n \"frame_id\":{}, \n", image.frame_id);
  const auto out = std::back_inserter(text);
  if (image.filename) fmt::format_to(out, " \"filename\":{}, \n", json_string(*image.filename));
  if (image.error) fmt::format_to(out, " \"error\":{}, \n", json_string(*image.error));
  if (extended) {
    fmt::format_to(out, " \"image_size\":{{\"width\":{}, \"height\":{}}}, \n \"ms\":{:f}, \n",
                   image.size.width, image.size.height, finite(image.milliseconds));
  }
  text += " \"objects\": [ \n";
  const std::vector<Pair> pairs = pairs_above(detections, threshold);
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    const Pair& pair = pairs[k];
    const Detection& detection = detections[pair.detection];
    const Box& box = detection.box;
    fmt::format_to(
        out,
        "  {{\"class_id\":{}, \"name\":{}, \"relative_coordinates\":{{\"center_x\":{:f}, "
        "\"center_y\":{:f}, \"width\":{:f}, \"height\":{:f}}}, \"confidence\":{:f}",
        pair.class_id, json_string(name_of(names, pair.class_id)), finite(box.x), finite(box.y),
        finite(box.w), finite(box.h), pair.confidence);
    if (extended) {
      fmt::format_to(out,
                     ", \"objectness\":{:f}, \"absolute_box\":{{\"left\":{:f}, \"top\":{:f}, "
                     "\"width\":{:f}, \"height\":{:f}}}",
                     finite(detection.objectness), finite(box.left() * image.size.width),
                     finite(box.top() * image.size.height), finite(box.w * image.size.width),
                     finite(box.h * image.size.height));
    }
    text += k + 1 < pairs.size() ? "}, \n" : "}\n";
  }
  text += " ] \n}";
  return text;
}

OutputJsonFile::OutputJsonFile(const std::filesystem::path& path) : file_(path) {
  file_.write("[\n");
}

void OutputJsonFile::add(std::string_view object) {
  if (!first_) file_.write(", \n");
  first_ = false;
  file_.write(object);
}

void OutputJsonFile::finish() {
  file_.write("\n]");
  file_.commit();
}

void ResultsJson::add(std::string_view path, ImageSize size, const DetectionList& detections,
                      std::span<const std::string> names, float threshold,
                      const std::optional<std::string>& error) {
  if (!images_.empty()) images_ += ",";
  const auto out = std::back_inserter(images_);
  fmt::format_to(out, "\n{{\"path\":{},\"width\":{},\"height\":{},", json_string(path), size.width,
                 size.height);
  if (error) fmt::format_to(out, "\"error\":{},", json_string(*error));
  images_ += "\"detections\":[";
  bool is_first = true;
  for (const Pair& pair : pairs_above(detections, threshold)) {
    const Box& box = detections[pair.detection].box;
    fmt::format_to(
        out, "{}{{\"class_id\":{},\"name\":{},\"confidence\":{:f},\"box\":[{:f},{:f},{:f},{:f}]}}",
        is_first ? "" : ",", pair.class_id, json_string(name_of(names, pair.class_id)),
        pair.confidence, finite(box.x), finite(box.y), finite(box.w), finite(box.h));
    is_first = false;
  }
  images_ += "]}";
}

std::string ResultsJson::text() const {
  return "{\"schema\":1,\"images\":[" + images_ + (images_.empty() ? "]}\n" : "\n]}\n");
}

}  // namespace lantern::eval
