#include "cli/saved_labels.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "data/labels.hpp"

namespace lantern::cli {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view kSideFile = ".lantern_labels";

// FNV-1a, 64 bit: tells an edited file from ours, nothing more is asked of it.
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", hash);
}

std::string label_text(const eval::DetectionList& detections, float threshold) {
  std::string text;
  for (std::size_t i = 0; i < detections.size(); ++i) {
    if (!(detections.best_probability(i) > threshold)) continue;
    const eval::Box& box = detections[i].box;
    text += fmt::format("{} {:2.4f} {:2.4f} {:2.4f} {:2.4f}\n", detections.best_class(i), box.x,
                        box.y, box.w, box.h);
  }
  return text;
}

}  // namespace

SavedLabels::SavedLabels(fs::path folder, bool force) : folder_(std::move(folder)), force_(force) {
  if (folder_.empty()) return;
  std::error_code code;
  fs::create_directories(folder_, code);
  if (code) {
    throw Error(ErrorCode::kResource, folder_.string(), "cannot be made: {}", code.message());
  }
}

SavedLabels::Hashes& SavedLabels::hashes_of(const fs::path& folder) {
  const auto [entry, is_new] = folders_.try_emplace(folder);
  std::error_code code;
  if (is_new && fs::exists(folder / kSideFile, code)) {
    const std::string text = read_file(folder / kSideFile);
    for (const std::string_view line : split(text, '\n')) {
      // "<hash> <file name>"; names may hold blanks
      const std::size_t blank = line.find(' ');
      if (blank == std::string_view::npos) continue;
      entry->second.emplace(line.substr(blank + 1), line.substr(0, blank));
    }
  }
  return entry->second;
}

void SavedLabels::write(const std::string& image, const eval::DetectionList& detections,
                        float threshold) {
  fs::path path = data::label_path(image);
  if (!folder_.empty()) path = folder_ / path.filename();
  const auto [writer, is_first] = written_.try_emplace(path, image);
  if (!is_first && writer->second != image) {
    finish();
    throw Error(ErrorCode::kInvalidData, image,
                "its label file {} was written for {} in this run: images whose labels share a "
                "folder need names "
                "of their own",
                path.string(), writer->second);
  }
  Hashes& hashes = hashes_of(path.parent_path());
  const std::string name = path.filename().string();
  std::error_code code;
  if (!force_ && fs::exists(path, code)) {
    const auto known = hashes.find(name);
    if (known == hashes.end() || known->second != hash_of(read_file(path))) {
      finish();  // what was written so far stays known as ours
      throw Error(ErrorCode::kResource, path.string(),
                  "is a label file that -save_labels did not write; -force overwrites it, "
                  "-label_dir DIR writes elsewhere");
    }
  }
  const std::string text = label_text(detections, threshold);
  write_file_atomically(path, text);
  hashes[name] = hash_of(text);
}

void SavedLabels::finish() {
  for (const auto& [folder, hashes] : folders_) {
    std::string text;
    for (const auto& [name, hash] : hashes) text += fmt::format("{} {}\n", hash, name);
    write_file_atomically(folder / kSideFile, text);
  }
}

}  // namespace lantern::cli
