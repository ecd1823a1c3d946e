#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/network.hpp"
#include "ops/softmax/word_tree.hpp"

// The files that `map=` and `tree=` name; used inside layers/ only. A relative path is taken from
// the working folder. What cannot be read is refused with kInvalidConfig, or with the file's own
// error.
namespace lantern::layers {

/// One class number a line; empty for an empty path.
std::vector<int> read_class_map(const Layer& layer, const std::string& path);

/// One node a line, `name parent`, the parent's number from 0 or -1 for a root; null for an empty
/// path. There must be `nodes` of them.
std::shared_ptr<const ops::WordTree> read_word_tree(const Layer& layer, const std::string& path,
                                                    std::int64_t nodes);

}  // namespace lantern::layers
