#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/results.hpp"

namespace lantern::eval {

/// Result files of `detector valid`. Nothing appears in the folder before finish(); every file is
/// replaced whole.
class ValidWriter {
 public:
  virtual ~ValidWriter() = default;
  /// Detections after NMS, boxes relative to the image; every probability above 0 is written.
  virtual void add_image(const std::filesystem::path& path, ImageSize size,
                         const DetectionList& detections) = 0;
  virtual void finish() = 0;
};

struct ValidOptions {
  std::filesystem::path folder = "results";  ///< must exist
  std::string name{};                        ///< `-out`; empty: the format's own
  std::vector<std::string> names{};          ///< class names
  std::vector<int> categories{};  ///< coco: category of each class; empty: the 80 of COCO
};

/// `format` is `eval=` of the .data file: voc, coco, imagenet, bdd or kitti. Throws at once for an
/// unknown format, a missing folder or more classes than the format's list has.
std::unique_ptr<ValidWriter> make_valid_writer(std::string_view format, ValidOptions options);

/// Number at the start of the file name, else the digits after its last '_'.
std::optional<std::int64_t> coco_image_id(const std::filesystem::path& path);

}  // namespace lantern::eval
