// A list of idle blocks per size, linked through their first words, and the chunk that new ones are cut from, under one lock.
// See idle_blocks.h for threads.
#include "tensor/idle_blocks.h"

#include <sys/mman.h>

#include <bit>
#include <mutex>
#include <new>
#include <utility>

#include "base/spin_lock.h"
#include "tensor/huge_pages.h"

namespace dtg {
namespace {

constexpr int64_t kIdleBytesMax = int64_t{16} << 20;
constexpr size_t kChunkBytes = size_t{8} << 20;

// Eight sizes between two powers of two, so that no more than a ninth of a block is nobody's: a huge page comes whole.
struct BlockSize {
  int number;
  int64_t bytes;
};

BlockSize size_for(int64_t asked) {
  const auto doubling = static_cast<int>(std::bit_width(static_cast<uint64_t>(asked / kIdleBlockMin))) - 1;
  const int64_t grain = (kIdleBlockMin / 8) << doubling, grains = (asked + grain - 1) / grain;
  return {doubling * 8 + static_cast<int>(grains) - 8, grains * grain};
}

BlockSize size_of_number(int number) { return {number, (kIdleBlockMin / 8 * (8 + number % 8)) << (number / 8)}; }

constexpr int kSizes = 5 * 8 + 1;

struct Idle {
  Idle* next;
};

// What is left of a mapping from which blocks are cut.
struct Chunk {
  char* begin = nullptr;
  size_t bytes = 0;

  void* cut(size_t wanted) {
    bytes -= wanted;
    return std::exchange(begin, begin + wanted);
  }
  void unmap() const {
    if (bytes) munmap(begin, bytes);
  }
};

constinit SpinLock word;  // guards what follows
Idle* idle[kSizes] = {};
int64_t idle_bytes = 0;
constinit Chunk chunk;

// With `word` held: a block that lies idle; null: there is none.
void* take_idle(const BlockSize& size) {
  Idle* const block = idle[size.number];
  if (!block) return nullptr;
  idle[size.number] = block->next;
  idle_bytes -= size.bytes;
  return block;
}

// With `word` held.
void put_idle(void* block, const BlockSize& size) {
  idle[size.number] = new (block) Idle{idle[size.number]};
  idle_bytes += size.bytes;
}

// To the system. A hole between two blocks that are in use may be a mapping too many: then it stays with us, empty but for the page that
// has its link.
void give_back(void* block, const BlockSize& size) {
  const auto bytes = static_cast<size_t>(size.bytes);
  if (munmap(block, bytes) == 0) return;
  constexpr size_t kPage = 4096;
  madvise(static_cast<char*>(block) + kPage, bytes - kPage, MADV_DONTNEED);
  const std::lock_guard lock(word);
  put_idle(block, size);
}

}  // namespace

void* take_middling_block(int64_t asked) {
  const BlockSize size = size_for(asked);
  const auto wanted = static_cast<size_t>(size.bytes);
  {
    const std::lock_guard lock(word);
    if (void* const block = take_idle(size)) return block;
    if (chunk.bytes >= wanted) return chunk.cut(wanted);
  }
  Chunk fresh{static_cast<char*>(map_huge_pages(kChunkBytes)), kChunkBytes};
  if (!fresh.begin) return nullptr;
  void* const block = fresh.cut(wanted);
  {
    const std::lock_guard lock(word);
    if (fresh.bytes > chunk.bytes) std::swap(fresh, chunk);
  }
  fresh.unmap();
  return block;
}

void return_middling_block(void* block, int64_t asked) {
  const BlockSize size = size_for(asked);
  {
    const std::lock_guard lock(word);
    if (idle_bytes + size.bytes <= kIdleBytesMax) return put_idle(block, size);
  }
  give_back(block, size);
}

int64_t idle_block_bytes() {
  const std::lock_guard lock(word);
  return idle_bytes;
}

void trim_idle_blocks() {
  for (int number = 0; number < kSizes; ++number) {
    const BlockSize size = size_of_number(number);
    Idle* list = nullptr;
    {
      const std::lock_guard lock(word);
      list = std::exchange(idle[number], nullptr);
      for (const Idle* block = list; block; block = block->next) idle_bytes -= size.bytes;
    }
    while (list) give_back(std::exchange(list, list->next), size);
  }
}

}  // namespace dtg
