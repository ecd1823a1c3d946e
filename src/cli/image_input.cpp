#include "cli/image_input.hpp"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"

namespace lantern::cli {

namespace {

namespace fs = std::filesystem;

bool has_image_ending(const fs::path& path) {
  static constexpr std::array<std::string_view, 9> kEndings{
      ".jpg", ".jpeg", ".png", ".bmp", ".webp", ".pgm", ".ppm", ".pnm", ".jpe"};
  std::string ending = path.extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

std::vector<std::string> images_of_folder(const std::string& folder) {
  std::vector<std::string> images;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && has_image_ending(entry->path())) {
      images.push_back(entry->path().string());
    }
  }
  if (code) throw Error(ErrorCode::kInvalidData, folder, "cannot be listed: {}", code.message());
  if (images.empty()) {
    throw Error(ErrorCode::kInvalidData, folder, "holds no image (jpg, png, webp, bmp, pnm)");
  }
  std::ranges::sort(images);
  return images;
}

std::vector<std::string> images_of_pattern(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> images;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    images.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  if (images.empty()) throw Error(ErrorCode::kInvalidData, pattern, "no file fits this pattern");
  return images;
}

}  // namespace

ImageInput::ImageInput(const std::string& argument, Terminal& terminal) : terminal_(terminal) {
  std::error_code code;
  if (argument.empty()) {
    from_input_ = true;
    struct stat status {};
    all_at_once_ = fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode);
  } else if (fs::is_directory(argument, code)) {
    known_ = images_of_folder(argument);
  } else if (!fs::exists(argument, code) && argument.find_first_of("*?[") != std::string::npos) {
    known_ = images_of_pattern(argument);
  } else {
    known_ = {argument};
  }
}

std::string ImageInput::read_line(bool& is_end) {
  for (;;) {
    terminal_.prompt("Enter Image Path: ");
    std::string line;
    is_end = !std::getline(std::cin, line) || terminal_.interrupted();
    if (is_end) return {};
    if (const std::string_view path = trim(line); !path.empty()) return std::string(path);
  }
}

std::vector<std::string> ImageInput::next(std::int64_t most) {
  if (!from_input_) return std::exchange(known_, {});
  const auto limit =
      all_at_once_ ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(most);
  std::vector<std::string> paths;
  while (paths.size() < limit) {
    bool is_end = false;
    std::string path = read_line(is_end);
    if (is_end) break;
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace lantern::cli
