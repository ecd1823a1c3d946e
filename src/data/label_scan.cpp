#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "core/file.hpp"
#include "data/labels.hpp"

namespace lantern::data {

namespace {

struct Found {
  LabelFile file;
  std::string path;
  bool missing = false;
  bool images_rule = false;
};

Found read_labels_of(const std::string& image, int classes) {
  Found found;
  found.path = label_path(image, &found.images_rule);
  std::error_code code;
  if (!std::filesystem::exists(found.path, code)) {
    found.missing = true;
    found.file.issues.push_back(
        {LabelIssueKind::kMissingFile, found.path, 0, "label file missing"});
    return found;
  }
  std::string text;
  try {
    text = read_text_file(found.path);
  } catch (const Error& error) {
    found.file.issues.push_back(
        {LabelIssueKind::kMalformed, found.path, 0, error.message() + ": dropped"});
    return found;
  }
  found.file = parse_labels(text, found.path, classes);
  return found;
}

/// Ids that start at 1: some file has the id just past the end and no file has id 0.
void hint_at_numbering_from_one(std::vector<LabelIssue>& issues, const LabelFile& file,
                                int classes) {
  const bool has_zero = std::any_of(file.boxes.begin(), file.boxes.end(),
                                    [](const Label& label) { return label.class_id == 0; });
  if (has_zero) return;
  const std::string past = fmt::format("class {},", classes);
  for (LabelIssue& issue : issues) {
    if (issue.kind == LabelIssueKind::kClassRange && issue.what.starts_with(past)) {
      issue.what += " (numbered from 1 instead of 0?)";
    }
  }
}

}  // namespace

LabelSet scan_labels(const ImageList& list, const ScanOptions& options) {
  const std::size_t count = list.images.size();
  // An image that is listed twice is read once.
  std::unordered_map<std::string_view, std::size_t> first_of;
  std::vector<std::size_t> source(count);
  for (std::size_t i = 0; i < count; ++i)
    source[i] = first_of.emplace(list.images[i], i).first->second;

  std::vector<Found> found(count);
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      constexpr std::size_t kBlock = 64;
      for (std::size_t first; (first = next.fetch_add(kBlock)) < count;) {
        for (std::size_t i = first; i < std::min(count, first + kBlock); ++i) {
          if (source[i] == i) found[i] = read_labels_of(list.images[i], options.classes);
        }
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    const auto wanted = std::clamp<std::size_t>(
        count / 64, 1, static_cast<std::size_t>(std::max(options.threads, 1)));
    for (std::size_t i = 1; i < wanted; ++i) threads.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);

  LabelSet set;
  set.images = static_cast<std::int64_t>(count);
  set.repeated_images = list.repeated;
  set.paths.reserve(count);
  set.labels.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Found& from = found[source[i]];
    set.paths.push_back(from.path);
    set.labels.push_back(from.file.boxes);
    set.missing += from.missing ? 1 : 0;
    set.files += from.missing ? 0 : 1;
    set.empty += !from.missing && from.file.lines == 0 ? 1 : 0;
    set.lines += from.file.lines;
    set.used += static_cast<std::int64_t>(from.file.boxes.size());
    set.images_rule_used = set.images_rule_used || from.images_rule;
    set.sixth_column_ignored = set.sixth_column_ignored || from.file.sixth_ignored;
    if (source[i] != i) continue;  // its lines were reported
    std::vector<LabelIssue> issues = from.file.issues;
    hint_at_numbering_from_one(issues, from.file, options.classes);
    bool bad = false;
    for (LabelIssue& issue : issues) {
      ++set.counts[static_cast<std::size_t>(issue.kind)];
      bad = bad || is_bad(issue.kind);
      set.dropped += is_bad(issue.kind) ? 1 : 0;
      const bool is_clipped =
          issue.kind == LabelIssueKind::kClipped || issue.kind == LabelIssueKind::kTooLarge;
      set.clipped += is_clipped ? 1 : 0;
      set.issues.push_back(std::move(issue));
    }
    set.bad_files += bad ? 1 : 0;
  }
  for (const LabelIssue& issue : set.issues) {
    const bool fatal =
        (options.strict && is_bad(issue.kind)) || ((options.strict || options.missing_is_error) &&
                                                   issue.kind == LabelIssueKind::kMissingFile);
    if (fatal) {
      throw Error(ErrorCode::kInvalidData,
                  issue.line > 0 ? fmt::format("{}:{}", issue.file, issue.line) : issue.file, "{}",
                  issue.what);
    }
  }
  return set;
}

std::string LabelSet::summary() const {
  std::string text =
      fmt::format("{} images, {} label files, {} boxes: {} used, {} clipped, {} dropped", images,
                  files, used + dropped, used, clipped, dropped);
  if (missing > 0) text += fmt::format("\n{} of {} images has no label file", missing, images);
  if (empty > 0) text += fmt::format("\n{} label files are empty (background)", empty);
  if (repeated_images > 0) {
    text +=
        fmt::format("\nrepeated images in the list: {} (allowed: oversampling)", repeated_images);
  }
  if (images_rule_used) text += "\nlabels are found by replacing the folder 'images' by 'labels'";
  if (sixth_column_ignored) text += "\nlabel lines have 6 columns; the 6th is ignored";
  for (int k = 0; k < kLabelIssueKinds; ++k) {
    const std::int64_t number = counts[static_cast<std::size_t>(k)];
    if (number == 0) continue;
    const auto kind = static_cast<LabelIssueKind>(k);
    text += fmt::format("\n{} x {}", number, to_string(kind));
    int shown = 0;
    for (const LabelIssue& issue : issues) {
      if (issue.kind != kind) continue;
      if (++shown > 10) break;
      text += "\n  " + issue.to_string();
    }
    if (number > 10) text += fmt::format("\n  ... and {} more", number - 10);
  }
  return text;
}

void LabelSet::write_bad_labels(const std::filesystem::path& file) const {
  if (issues.empty()) return;
  std::string text;
  for (const LabelIssue& issue : issues) text += issue.to_string() + "\n";
  write_file_atomically(file, text);
}

void check_bad_data_limit(const LabelSet& set, double limit) {
  if (static_cast<double>(set.bad_files) <= limit * static_cast<double>(set.images)) return;
  std::string first;
  for (const LabelIssue& issue : set.issues) {
    if (is_bad(issue.kind)) {
      first = issue.to_string();
      break;
    }
  }
  throw Error(ErrorCode::kInvalidData, "",
              "{} of {} images have label lines that cannot be used, more than "
              "bad_data_limit={:g} (percent, in [net]); the first is {}",
              set.bad_files, set.images, 100 * limit, first);
}

}  // namespace lantern::data
