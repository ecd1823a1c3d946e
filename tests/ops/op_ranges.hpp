#pragma once

#include <set>
#include <string>
#include <vector>

#include "ops/select.hpp"

namespace lantern::test {

/// Kinds of ops that have run in two ranges or more, and those of them that added to an output
/// divided into images.
struct RangeCoverage {
  std::set<std::string> divided, accumulated;
};

/// Runs the ops of a graph one by one on memory of their own: over all images, and again in ranges
/// from the same operands; every byte that is written must come out the same.
class OpRanges {
 public:
  OpRanges(const graph::Graph& graph, const ops::SelectOptions& options);

  /// The mini-batch program of two subdivisions, then the forward program.
  void compare(RangeCoverage& coverage);

 private:
  using Bytes = std::vector<std::byte>;
  /// Memory of a tensor, with a start that suits every kernel.
  class Store {
   public:
    explicit Store(std::size_t bytes) : memory_(bytes + kBorder), bytes_(bytes) {}
    std::byte* data() {
      const auto at = reinterpret_cast<std::uintptr_t>(memory_.data());
      return memory_.data() + (kBorder - at % kBorder) % kBorder;
    }
    std::size_t size() const { return bytes_; }

   private:
    static constexpr std::size_t kBorder = 256;
    Bytes memory_;
    std::size_t bytes_;
  };

  void fill_inputs();
  void compare_op(std::size_t op, const ops::RunContext& context, RangeCoverage& coverage);
  // Written operands as they are before the op: what it adds to, else poison.
  void restore(const graph::SelectedOp& op, const std::vector<Bytes>& before);
  void poison_scratch(const graph::SelectedOp& op);
  void run(std::size_t op, ops::RunContext context, std::int64_t first, std::int64_t images);
  std::vector<Bytes> written(const graph::SelectedOp& op);
  bool is_scratch(std::uint32_t tensor) const;

  ops::Selection selection_;
  int threads_;
  std::vector<Store> stores_;  // parallel to the selected tensors
};

}  // namespace lantern::test
