// A list of idle blocks per size, linked through their first words, under one lock. See idle_blocks.h for threads.
#include "tensor/idle_blocks.h"

#include <sys/mman.h>

#include <mutex>
#include <new>

#include "base/spin_lock.h"

namespace dtg {
namespace {

constexpr int64_t kIdleBytesMax = int64_t{16} << 20;
constexpr int64_t kSizes = kIdleBlockMax / kIdleBlockMin;

struct Idle {
  Idle* next;
};

constinit SpinLock word;  // guards what follows
Idle* idle[kSizes + 1] = {};
int64_t idle_bytes = 0;

// Sizes are multiples of the smallest one; pages that are not touched cost nothing.
int64_t size_number(int64_t bytes) { return (bytes + kIdleBlockMin - 1) / kIdleBlockMin; }
size_t mapped_bytes(int64_t number) { return static_cast<size_t>(number * kIdleBlockMin); }

}  // namespace

void* take_middling_block(int64_t bytes) {
  const int64_t number = size_number(bytes);
  {
    const std::lock_guard lock(word);
    if (Idle* const block = idle[number]) {
      idle[number] = block->next;
      idle_bytes -= number * kIdleBlockMin;
      return block;
    }
  }
  void* const block = mmap(nullptr, mapped_bytes(number), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

void return_middling_block(void* block, int64_t bytes) {
  const int64_t number = size_number(bytes), whole = number * kIdleBlockMin;
  {
    const std::lock_guard lock(word);
    if (idle_bytes + whole <= kIdleBytesMax) {
      idle[number] = new (block) Idle{idle[number]};
      idle_bytes += whole;
      return;
    }
  }
  munmap(block, mapped_bytes(number));
}

int64_t idle_block_bytes() {
  const std::lock_guard lock(word);
  return idle_bytes;
}

void trim_idle_blocks() {
  for (int64_t number = 1; number <= kSizes; ++number) {
    for (;;) {
      Idle* block = nullptr;
      {
        const std::lock_guard lock(word);
        block = idle[number];
        if (!block) break;
        idle[number] = block->next;
        idle_bytes -= number * kIdleBlockMin;
      }
      munmap(block, mapped_bytes(number));
    }
  }
}

}  // namespace dtg
