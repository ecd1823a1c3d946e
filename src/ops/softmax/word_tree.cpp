#include "ops/softmax/word_tree.hpp"

#include "core/error.hpp"

namespace lantern::ops {

WordTree WordTree::of(std::vector<int> parents) {
  WordTree tree;
  tree.parents = std::move(parents);
  for (int node = 0; node < tree.nodes(); ++node) {
    const int parent = tree.parents[static_cast<std::size_t>(node)];
    LANTERN_ASSERT(parent < node, "a parent stands before its children");
    const bool first = node == 0 || tree.parents[static_cast<std::size_t>(node - 1)] != parent;
    if (first) tree.groups.push_back({.first = node});
    ++tree.groups.back().count;
    tree.group_of.push_back(static_cast<int>(tree.groups.size()) - 1);
  }
  return tree;
}

float WordTree::probability(const float* conditional, int node) const {
  float product = 1;
  for (; node >= 0; node = parents[static_cast<std::size_t>(node)]) product *= conditional[node];
  return product;
}

}  // namespace lantern::ops
