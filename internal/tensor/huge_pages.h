// Fresh memory of the kernel's in huge pages, where it has them: touching 4 KB pages for the first time is slower than a socket, and
// reading them again misses the TLB. The caller owns it and gives it back, in whole or in parts, with munmap. Any thread.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace dtg {

inline constexpr int64_t kHugePage = int64_t{2} << 20;

// `bytes` is a multiple of kHugePage; begins on a huge page. Null: the system has no memory.
inline void* map_huge_pages(size_t bytes) {
  constexpr auto page = static_cast<uintptr_t>(kHugePage);
  // One page too many, and the ends given back.
  void* const raw = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t begin = (start + page - 1) / page * page;
  if (begin != start) munmap(raw, begin - start);
  const uintptr_t end = begin + bytes, raw_end = start + bytes + page;
  if (raw_end != end) munmap(reinterpret_cast<void*>(end), raw_end - end);
  madvise(reinterpret_cast<void*>(begin), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(begin);
}

}  // namespace dtg
