// Inside an iteration nothing of ours allocates: malloc and its kin are counted while one runs.
// oneDNN's execute makes a few small ones of its own, so only those above 256 bytes count.

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "exec/small_network.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define LANTERN_NO_HOOK 1
#endif

#ifndef LANTERN_NO_HOOK
namespace {
constexpr std::size_t kLimit = 256;
std::atomic<bool> counting{false};
std::atomic<long> large{0};
std::atomic<std::size_t> largest{0};

void count(std::size_t bytes) {
  if (bytes <= kLimit || !counting.load(std::memory_order_relaxed)) return;
  large.fetch_add(1);
  std::size_t seen = largest.load();
  while (bytes > seen && !largest.compare_exchange_weak(seen, bytes)) {
  }
}
}  // namespace

// glibc's own entry points behind the names that the whole process calls.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  count(bytes);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t items, std::size_t bytes) {
  count(items * bytes);
  return __libc_calloc(items, bytes);
}
void* realloc(void* block, std::size_t bytes) {
  count(bytes);
  return __libc_realloc(block, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  count(bytes);
  *block = __libc_memalign(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}
}
#endif

namespace lantern::test {
namespace {

TEST(Allocation, NothingLargeIsAllocatedInsideAnIteration) {
#ifdef LANTERN_NO_HOOK
  GTEST_SKIP() << "a sanitizer owns malloc in this build";
#else
  counting = true;                           // the hook works
  void* volatile block = std::malloc(1000);  // volatile: or the compiler leaves both calls out
  std::free(block);
  counting = false;
  ASSERT_EQ(large.load(), 1);
  large = 0;
  largest = 0;
  SmallNetwork small = small_network(1, 2);
  // oneDNN's gemm packs its matrices in memory of its own; this network is one of direct
  // convolutions only.
  for (const graph::SelectedOp& op : small.model->executor().selected().ops) {
    ASSERT_EQ(op.kernel.find("gemm"), std::string::npos) << op.label;
  }
  small.iterate(1);  // the threads of the team are made here
  const auto images =
      std::span<const float>(small.images).first(small.images.size() / SmallNetwork::kSubdivisions);
  const ops::RunContext context = small.context(2, 0);
  small.model->forward(images);
  counting = true;
  for (int i = 2; i <= 4; ++i) small.iterate(i);
  small.model->forward(images);
  const bool finite = !small.model->find_non_finite_gradient(context);
  counting = false;
  EXPECT_TRUE(finite);
  EXPECT_EQ(large.load(), 0) << "the largest has " << largest.load() << " bytes";
#endif
}

}  // namespace
}  // namespace lantern::test
