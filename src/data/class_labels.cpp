#include "data/class_labels.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"

namespace lantern::data {

namespace {

// Letters and digits, and every byte of a character beyond ASCII.
bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0;
}

bool is_separator(char c) { return c == '/' || c == '\\'; }

void add_once(std::vector<int>& classes, int id) {
  if (std::ranges::find(classes, id) == classes.end()) classes.push_back(id);
}

std::vector<std::string_view> components_of(std::string_view path) {
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  for (std::size_t at = 0; at <= path.size(); ++at) {
    if (at < path.size() && !is_separator(path[at])) continue;
    if (at > start) parts.push_back(path.substr(start, at - start));
    start = at + 1;
  }
  return parts;
}

// Characters of the folders that all paths begin with, the last separator included.
std::size_t shared_folders(const std::vector<std::string>& paths) {
  const std::string& first = paths.front();
  std::size_t same = first.size();
  for (const std::string& path : paths) {
    const auto end = std::ranges::mismatch(first, path).in1;
    same = std::min(same, static_cast<std::size_t>(end - first.begin()));
  }
  while (same > 0 && !is_separator(first[same - 1])) --same;
  return same;
}

// "'cat' and 'dog'"
std::string names_of(std::span<const int> classes, std::span<const std::string> labels) {
  std::string text;
  for (const int id : classes) {
    text +=
        fmt::format("{}'{}'", text.empty() ? "" : " and ", labels[static_cast<std::size_t>(id)]);
  }
  return text;
}

// A line for the number of images, then the first ten.
std::string listed_images(std::string_view heading, std::span<const ClassIssue> images) {
  if (images.empty()) return {};
  std::string text = fmt::format("\n{} images {}:", images.size(), heading);
  for (const ClassIssue& issue : images.first(std::min<std::size_t>(images.size(), 10)))
    text += fmt::format("\n  {}: {}", issue.image, issue.what);
  if (images.size() > 10) text += fmt::format("\n  ... and {} more", images.size() - 10);
  return text;
}

}  // namespace

ClassMatcher::ClassMatcher(std::span<const std::string> labels, const std::filesystem::path& where)
    : labels_(labels.begin(), labels.end()) {
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    if (labels_[i].empty()) {
      throw Error(ErrorCode::kInvalidData, fmt::format("{}:{}", where.string(), i + 1),
                  "an empty label fits every image; want one class label a line");
    }
    const auto [before, is_new] = ids_.emplace(labels_[i], static_cast<int>(i));
    if (!is_new) {
      throw Error(ErrorCode::kInvalidData, fmt::format("{}:{}", where.string(), i + 1),
                  "the label '{}' stands in line {} too", labels_[i], before->second + 1);
    }
    longest_ = std::max(longest_, labels_[i].size());
  }
}

int ClassMatcher::by_name(std::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? -1 : found->second;
}

int ClassMatcher::find(std::string_view text) const {
  if (const int id = by_name(text); id >= 0) return id;
  const auto number = parse_int(text);
  const bool there = number && *number >= 0 && std::cmp_less(*number, labels_.size());
  return there ? static_cast<int>(*number) : -1;
}

// Labels that equal a run of words of the name; a run inside a longer one that fits does not count.
void ClassMatcher::match_file_name(std::string_view name, std::vector<int>& found) const {
  name = name.substr(0, name.rfind('.'));
  std::vector<std::size_t> starts, ends;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is_word(name[i])) continue;
    if (i == 0 || !is_word(name[i - 1])) starts.push_back(i);
    if (i + 1 == name.size() || !is_word(name[i + 1])) ends.push_back(i + 1);
  }
  std::size_t covered = 0;  // end of the longest run found so far
  for (std::size_t s = 0; s < starts.size(); ++s) {
    const auto end = std::ranges::upper_bound(ends, starts[s] + longest_);
    for (auto e = static_cast<std::size_t>(end - ends.begin()); e-- > s;) {
      if (ends[e] <= covered) break;
      const int id = by_name(name.substr(starts[s], ends[e] - starts[s]));
      if (id < 0) continue;
      add_once(found, id);
      covered = ends[e];
      break;
    }
  }
}

std::vector<int> ClassMatcher::longest_inside(std::string_view text) const {
  std::vector<int> found;
  std::size_t longest = 1;
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    if (labels_[i].size() < longest || text.find(labels_[i]) == std::string_view::npos) continue;
    if (labels_[i].size() > longest) found.clear();
    longest = labels_[i].size();
    found.push_back(static_cast<int>(i));
  }
  return found;
}

ClassMatch ClassMatcher::match(std::string_view path, std::size_t shared) const {
  const std::string_view own = path.substr(shared);
  const std::vector<std::string_view> parts = components_of(own);
  ClassMatch match;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i + 1 == parts.size()) {
      match_file_name(parts[i], match.classes);
    } else if (const int id = by_name(parts[i]); id >= 0) {
      add_once(match.classes, id);
    }
  }
  std::ranges::sort(match.classes);
  if (!match.classes.empty()) return match;
  const std::vector<std::string_view> folders = components_of(path.substr(0, shared));
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    if (const int id = by_name(*folder); id >= 0) return {{id}};
  }
  match.classes = longest_inside(own);
  if (match.classes.empty()) match.classes = longest_inside(path);
  return match;
}

ClassSet read_class_list(const std::filesystem::path& path, const ClassMatcher& matcher) {
  const ImageList list = read_image_list(path, ListForm::kWithClasses);
  ClassSet set{.list = path, .images = {}, .classes = {}};
  set.listed = static_cast<std::int64_t>(list.images.size());
  set.repeated = list.repeated;
  set.counts.resize(matcher.labels().size());
  const std::size_t shared = shared_folders(list.images);
  for (std::size_t i = 0; i < list.images.size(); ++i) {
    const std::string& image = list.images[i];
    ClassIssue issue{.image = image, .line = list.lines[i], .what = {}};
    std::vector<int> classes;
    if (!list.classes[i].empty()) {
      const int id = matcher.find(list.classes[i]);
      if (id >= 0) classes.push_back(id);
      issue.what = fmt::format("'{}' is no label and no class number", list.classes[i]);
    } else {
      classes = matcher.match(image, shared).classes;
      issue.what = "no label is part of its path";
    }
    if (classes.empty()) {
      set.issues.push_back(std::move(issue));
      continue;
    }
    for (const int id : classes) ++set.counts[static_cast<std::size_t>(id)];
    if (classes.size() > 1) {
      issue.what = names_of(classes, matcher.labels());
      set.several.push_back(std::move(issue));
      set.further[set.images.size()].assign(classes.begin() + 1, classes.end());
    }
    set.images.push_back(image);
    set.classes.push_back(classes.front());
  }
  if (set.images.empty()) {
    const ClassIssue& first = set.issues.front();
    throw Error(ErrorCode::kInvalidData, path.string(),
                "none of its {} images has a class; line {}, {}: {}. The label must be a folder or "
                "a part of the file name, or stand behind the path and a TAB",
                set.listed, first.line, first.image, first.what);
  }
  return set;
}

std::string ClassSet::summary(std::span<const std::string> labels) const {
  std::string text =
      fmt::format("{}: {} images of {} classes", list.string(), images.size(), labels.size());
  if (repeated > 0) text += fmt::format(", {} of them listed again", repeated);
  std::string without;
  int missing = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0 && missing++ < 10) {
      without += fmt::format("{}{}", without.empty() ? "" : ", ", labels[i]);
    }
  }
  if (missing > 0) {
    text += fmt::format("\n{} classes without an image: {}{}", missing, without,
                        missing > 10 ? ", ..." : "");
  }
  return text + listed_images("with no class are left out", issues) +
         listed_images("are of several classes, all of which are learned", several);
}

void check_class_limit(const ClassSet& set, double limit, bool strict) {
  const auto bad = static_cast<double>(set.issues.size());
  if (bad > (strict ? 0 : limit * static_cast<double>(set.listed))) {
    const ClassIssue& first = set.issues.front();
    throw Error(
        ErrorCode::kInvalidData, fmt::format("{}:{}", set.list.string(), first.line),
        "{} of {} images have no class, {}; the first is {}: {}", set.issues.size(), set.listed,
        strict ? std::string("-strict allows none")
               : fmt::format("more than bad_data_limit={:g} (percent, in [net])", 100 * limit),
        first.image, first.what);
  }
  if (!strict || set.several.empty()) return;
  const ClassIssue& first = set.several.front();
  throw Error(ErrorCode::kInvalidData, fmt::format("{}:{}", set.list.string(), first.line),
              "{} of {} images are of several classes, -strict allows none; the first is {}: {}. "
              "Write the class behind the path and a TAB",
              set.several.size(), set.listed, first.image, first.what);
}

}  // namespace lantern::data
