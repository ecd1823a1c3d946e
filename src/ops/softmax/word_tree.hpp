#pragma once

#include <cstdint>
#include <vector>

namespace lantern::ops {

/// A hierarchy of classes (yolo9000): siblings that stand together share a softmax.
struct WordTree {
  struct Group {
    std::int64_t first = 0, count = 0;
  };
  std::vector<int> parents;   ///< of every node, -1 for a root; smaller than the node
  std::vector<Group> groups;  ///< consecutive nodes with equal parents, in order
  std::vector<int> group_of;  ///< of every node

  /// `parents[i]` < i for every node.
  static WordTree of(std::vector<int> parents);
  int nodes() const { return static_cast<int>(parents.size()); }

  /// The product of the conditional probabilities of a node and its ancestors.
  float probability(const float* conditional, int node) const;
};

}  // namespace lantern::ops
