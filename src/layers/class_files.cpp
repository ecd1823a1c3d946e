#include "layers/class_files.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "layers/lower_context.hpp"

namespace lantern::layers {

std::vector<int> read_class_map(const Layer& layer, const std::string& path) {
  if (path.empty()) return {};
  std::vector<int> map;
  const std::string text = read_file(path, 1_MiB);
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    const std::optional<std::int64_t> value = parse_int(trim(line));
    if (!value || *value != static_cast<int>(*value))
      refuse(layer, "map={}: '{}' is no class index", path, trim(line));
    map.push_back(static_cast<int>(*value));
  }
  return map;
}

std::shared_ptr<const ops::WordTree> read_word_tree(const Layer& layer, const std::string& path,
                                                    std::int64_t nodes) {
  if (path.empty()) return nullptr;
  constexpr Bytes kLargest = 256_MiB;
  const std::string text = read_file(path, kLargest);
  std::vector<int> parents;
  int number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty()) continue;
    const auto node = static_cast<std::int64_t>(parents.size());
    const std::size_t blank = line.find_last_of(" \t");
    const std::optional<std::int64_t> parent =
        blank == std::string_view::npos ? std::nullopt : parse_int(line.substr(blank + 1));
    if (!parent) {
      refuse(layer, "tree={0}: {0}:{1}: '{2}' is no 'name parent'", path, number, readable(line));
    }
    if (*parent < -1 || *parent >= node) {
      refuse(layer,
             "tree={0}: {0}:{1}: node {2} has parent {3}; want an earlier node, or -1 for a root",
             path, number, node, *parent);
    }
    parents.push_back(static_cast<int>(*parent));
  }
  if (static_cast<std::int64_t>(parents.size()) != nodes) {
    refuse(layer, "tree={} has {} nodes, the layer {} classes; they must be equal", path,
           parents.size(), nodes);
  }
  return std::make_shared<const ops::WordTree>(ops::WordTree::of(std::move(parents)));
}

}  // namespace lantern::layers
