#pragma once

#include <cstddef>

namespace lantern::test {

/// Counts what the whole process asks of malloc and its kin while one is alive. One at a time.
class MallocCount {
 public:
  /// Only blocks of more than `limit` bytes count.
  explicit MallocCount(std::size_t limit);
  ~MallocCount();
  MallocCount(const MallocCount&) = delete;
  MallocCount& operator=(const MallocCount&) = delete;

  /// False where a sanitizer owns malloc.
  static bool works();
  long count() const;
  std::size_t largest() const;
};

}  // namespace lantern::test
