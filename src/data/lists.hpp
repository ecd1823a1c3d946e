#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.hpp"

namespace lantern::data {

/// Reads a text file as UTF-8: a UTF-8 byte-order mark is dropped, UTF-16 with a mark is converted;
/// UTF-16 without a mark is an Error that names the file and says how to convert it.
std::string read_text_file(const std::filesystem::path& path);
/// The same for bytes that are already in memory; `name` is for messages.
std::string decode_text(std::string bytes, const std::string& name);
/// Lines without their ends (LF, CR LF).
std::vector<std::string_view> split_lines(std::string_view text);

/// A parsed `.data` file. Values are trimmed; the first of two equal keys counts.
struct DataFile {
  struct Value {
    std::string text{};
    int line = 0;
  };
  std::filesystem::path path{};
  std::map<std::string, Value> values{};

  bool has(const std::string& key) const { return values.contains(key); }
  std::string text(const std::string& key, const std::string& otherwise = {}) const;
  /// Error `file:line` when the value is no integer or below `min`.
  std::int64_t integer(const std::string& key, std::int64_t otherwise, std::int64_t min = 0) const;
  /// The path behind a key: `~` expanded, as written if that exists or is absolute, else relative
  /// to the folder of the
  /// `.data` file if that exists (said once through the log), else as written.
  std::filesystem::path file(const std::string& key, const std::string& otherwise = {}) const;
  /// "obj.data:3", or the path alone for a key that is not there.
  std::string where(const std::string& key) const;
};

/// Every faulty line ends up in `diagnostics`; throws kInvalidConfig when there is one. Warnings
/// (unknown key with the nearest known one, a key given twice) stay in `diagnostics` for the
/// caller.
DataFile read_data_file(const std::filesystem::path& path, Diagnostics& diagnostics);
DataFile parse_data_file(std::string_view text, const std::filesystem::path& path,
                         Diagnostics& diagnostics);

/// Class names, one a line; trailing blank lines do not count.
std::vector<std::string> read_names(const std::filesystem::path& path);
/// A name count that differs from `classes` is an Error that names both numbers and both places; a
/// `classes` key of the .data file that differs is a warning that shows all three numbers and says
/// that the cfg's is used.
void check_class_counts(int classes, const std::string& cfg_where, const DataFile* data_file,
                        const std::vector<std::string>* names,
                        const std::filesystem::path& names_path, Diagnostics& diagnostics);

struct ImageList {
  std::filesystem::path path{};
  std::vector<std::string> images{};  ///< as they can be opened
  std::vector<int> lines{};           ///< line of each, from 1
  /// ListForm::kWithClasses: what stands behind the first TAB of each, or nothing.
  std::vector<std::string> classes{};
  std::int64_t repeated = 0;  ///< entries whose path occurred before (allowed: oversampling)
};
enum class ListForm : std::uint8_t {
  kPaths,
  kWithClasses,  ///< a line may be `path<TAB>class`
};
/// Paths relative to the working directory; where only the list's own folder has the file, that
/// one. An empty list is an Error.
ImageList read_image_list(const std::filesystem::path& path, ListForm form = ListForm::kPaths);
ImageList parse_image_list(std::string_view text, const std::filesystem::path& path,
                           ListForm form = ListForm::kPaths);

}  // namespace lantern::data
