#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.hpp"
#include "eval/detection.hpp"

namespace lantern::eval {

struct ImageSize {
  int width = 0, height = 0;
};

/// Lines `dog: 98%` of one image, sorted by the box's left edge; per detection the best class, then
/// every other above the threshold. `extended` adds TAB and the box in pixels, rounded, not
/// clipped. Classes named `dont_show...` are left out. `track_ids`: one an element of the list, or
/// empty.
std::string detections_text(const DetectionList& detections, std::span<const std::string> names,
                            ImageSize image, float threshold, bool extended,
                            std::span<const int> track_ids = {});

/// One image of the `-out` file.
struct OutputImage {
  std::int64_t frame_id = 1;
  std::optional<std::string> filename{};
  ImageSize size{};
  std::optional<std::string> error{};  ///< the image could not be read
  double milliseconds = 0;
};

/// One object of the `-out` file (also the unit of `-json_port`), without line end. Entries are
/// (detection, class) pairs above `threshold`, confidence descending. `extended` adds image size,
/// absolute box, objectness and time.
std::string output_object(const OutputImage& image, const DetectionList& detections,
                          std::span<const std::string> names, bool extended = false,
                          float threshold = 0.005F);

/// The `-out` file: objects are written as they come, the file appears whole on finish().
class OutputJsonFile {
 public:
  explicit OutputJsonFile(const std::filesystem::path& path);
  void add(std::string_view object);
  void finish();

 private:
  AtomicFile file_;
  bool first_ = true;
};

/// Our own form:
/// {"schema":1,"images":[{"path","width","height","detections":[{"class_id","name","confidence",
/// "box":[cx,cy,w,h]}]}]}, boxes relative; an unreadable image carries "error".
class ResultsJson {
 public:
  void add(std::string_view path, ImageSize size, const DetectionList& detections,
           std::span<const std::string> names, float threshold,
           const std::optional<std::string>& error = std::nullopt);
  /// The whole document so far, with a line end.
  std::string text() const;

 private:
  std::string images_;
};

}  // namespace lantern::eval
