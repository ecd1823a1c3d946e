#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/lists.hpp"

namespace lantern::data {

/// What the path of an image says about its class.
struct ClassMatch {
  std::vector<int> classes;  ///< ascending; several fit alike and are all meant
};

/// Finds class labels in paths. In this order: a folder, or a part of the file name between other
/// characters than letters and digits, that equals a label (`3_hot_dog.jpg` is hot_dog, not dog);
/// then the longest label that occurs anywhere. Folders that all images of a list share count only
/// where the rest of the path says nothing. Darknet: every label that occurs anywhere.
class ClassMatcher {
 public:
  /// Throws kInvalidData, at `where`, for a label that is empty or there twice.
  ClassMatcher(std::span<const std::string> labels, const std::filesystem::path& where);
  ClassMatcher(const ClassMatcher&) = delete;  // ids_ looks into labels_
  ClassMatcher& operator=(const ClassMatcher&) = delete;

  const std::vector<std::string>& labels() const { return labels_; }
  /// `shared` characters of the path are those of folders that all images have.
  ClassMatch match(std::string_view path, std::size_t shared = 0) const;
  /// Class by name, else by number; -1 for neither.
  int find(std::string_view text) const;

 private:
  void match_file_name(std::string_view name, std::vector<int>& found) const;
  int by_name(std::string_view name) const;
  std::vector<int> longest_inside(std::string_view text) const;
  std::vector<std::string> labels_;
  std::size_t longest_ = 0;
  std::unordered_map<std::string_view, int> ids_;
};

/// An image that does not have exactly one class.
struct ClassIssue {
  std::string image;
  int line = 0;      ///< of the list
  std::string what;  ///< "no label of labels.list is part of its path"
};

/// The images of a list that have a class.
struct ClassSet {
  std::filesystem::path list;
  std::vector<std::string> images;
  std::vector<int> classes;  ///< parallel to images; of several the first in the order of labels
  /// The further classes of the images that have several, by index into images.
  std::unordered_map<std::size_t, std::vector<int>> further{};
  std::int64_t listed = 0;  ///< images of the list
  std::int64_t repeated = 0;
  std::vector<std::int64_t> counts;   ///< images by class
  std::vector<ClassIssue> issues{};   ///< images without a class; they are not used
  std::vector<ClassIssue> several{};  ///< images of several classes; they are used

  /// Lines for people: counts, classes without an image, the first 10 images of each kind that do
  /// not have exactly one class.
  std::string summary(std::span<const std::string> labels) const;
};

/// Reads a list of paths, or of `path<TAB>class` (a label, or its number from 0), and resolves all
/// classes once. Throws kInvalidData when no image has one.
ClassSet read_class_list(const std::filesystem::path& list, const ClassMatcher& matcher);
/// More than `limit` (a fraction of the images) without a class are one Error that names the first;
/// with `strict` so is any image that does not have exactly one.
void check_class_limit(const ClassSet& set, double limit, bool strict);

}  // namespace lantern::data
