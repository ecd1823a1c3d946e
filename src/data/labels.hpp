#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/lists.hpp"

namespace lantern::data {

/// One object: class from 0, centre and size relative to the image, as written in the file (w, h <=
/// 1 + 1e-3 clamped).
struct Label {
  int class_id = 0;
  float x = 0, y = 0, w = 0, h = 0;
  int line_index = 0;  ///< position among the boxes of its file, part of the track id
};

/// Where the label file of an image lies by Darknet's rules alone (no look at the disk): the first
/// occurrence of /images/train2017/ and its like is replaced, then the ending by .txt.
std::string darknet_label_path(std::string_view image_path);
/// The same, and when that file does not exist and a component `images` is there, that component
/// (last one first) replaced by `labels` if such a file exists. `used_images_rule` tells.
std::string label_path(std::string_view image_path, bool* used_images_rule = nullptr);

enum class LabelIssueKind {
  kMissingFile,
  kMalformed,     ///< not five fields, not numbers, class with a fraction
  kExtraColumns,  ///< more than five fields in some lines
  kClassRange,    ///< class outside 0 ... classes - 1
  kPixels,        ///< all of x, y, w, h > 1
  kCentreOutside,
  kNoArea,  ///< w <= 0 or h <= 0
  kNotFinite,
  kClipped,     ///< an edge sticks out: clipped and used
  kTooLarge,    ///< w or h > 1 + 1e-3: clipped and used
  kDuplicate,   ///< exact repetition: kept
  kTwoClasses,  ///< same box with another class: kept (multi-label)
};
inline constexpr int kLabelIssueKinds = 12;
std::string_view to_string(LabelIssueKind kind);
/// Issues whose line is not used.
bool is_bad(LabelIssueKind kind);

struct LabelIssue {
  LabelIssueKind kind;
  std::string file;
  int line = 0;
  std::string what;  ///< "class 2, want 0 to 1: dropped"
  /// "img/02.txt:1: class 2, want 0 to 1: dropped"
  std::string to_string() const;
};

struct LabelFile {
  std::vector<Label> boxes;
  std::vector<LabelIssue> issues;
  int lines = 0;               ///< lines that are not blank
  bool sixth_ignored = false;  ///< every line has exactly 6 columns
};
/// `classes` <= 0 switches the class check off (the number of classes is not known).
LabelFile parse_labels(std::string_view text, const std::string& file, int classes);

/// Cut at the border of the picture.
Label clip_to_image(Label label);
/// Darknet's track id: line index + (djb2(file name) mod 4000) * 4000.
float track_id(std::string_view label_file, int line_index);

struct ScanOptions {
  int classes = 0;
  int threads = 2;
  bool missing_is_error = false;  ///< missing_labels=error
  bool strict = false;            ///< the first bad line is fatal
};

/// Labels of all images of a list, read once at the start.
struct LabelSet {
  std::vector<std::string> paths;          ///< of the label file, parallel to the images
  std::vector<std::vector<Label>> labels;  ///< parallel to the images; empty: background

  std::int64_t images = 0, files = 0, missing = 0, empty = 0;
  std::int64_t lines = 0, used = 0, clipped = 0, dropped = 0;
  std::int64_t bad_files = 0;  ///< files with at least one line that is dropped
  std::int64_t repeated_images = 0;
  bool images_rule_used = false;
  bool sixth_column_ignored = false;
  std::array<std::int64_t, kLabelIssueKinds> counts{};
  std::vector<LabelIssue> issues;  ///< in the order of the list

  /// Several lines for people: counts, the first 10 of each kind.
  std::string summary() const;
  /// Every issue a line; nothing is written when there is none.
  void write_bad_labels(const std::filesystem::path& file) const;
};
/// Threaded; the result does not depend on the number of threads.
LabelSet scan_labels(const ImageList& list, const ScanOptions& options);
/// One clear Error when more than `limit` (a fraction of the images) have lines that had to be
/// dropped.
void check_bad_data_limit(const LabelSet& set, double limit);

}  // namespace lantern::data
