// Blocks: small ones from mimalloc through its explicit API (never as an override), large ones from mmap
// with huge pages advised, because touching fresh 4 KB pages is slower than a socket. Any thread.
#include "tensor/buffer.h"

#include <mimalloc.h>
#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "tensor/huge_pages.h"
#include "tensor/idle_blocks.h"

// The sanitizers see through malloc, not through mimalloc: a block that one thread frees and another gets would look
// like a race, and an overrun would hit a neighbour unseen.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define DTG_PLAIN_BLOCKS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define DTG_PLAIN_BLOCKS 1
#endif
#endif

namespace dtg {
namespace {
#ifdef DTG_PLAIN_BLOCKS
void* small_block(int64_t bytes) { return std::aligned_alloc(kBlockAlign, static_cast<size_t>(align_up(bytes))); }
void free_small_block(void* block, int64_t) { std::free(block); }
void give_back_small_blocks() {}
#else
void* small_block(int64_t bytes) {
  return is_middling(bytes) ? take_middling_block(bytes) : mi_malloc_aligned(static_cast<size_t>(bytes), kBlockAlign);
}

// mimalloc gives pages back to the system when somebody frees once more, a second later. Who drops much and then nothing, as a garbage
// collector does, would keep all of it; so each thread says now and then that it means it.
constexpr int64_t kGiveBackEvery = int64_t{64} << 20;  // as fresh pages cost more than what is done with a small tensor
constinit thread_local int64_t freed_bytes = 0;

void give_back_small_blocks() {
  mi_thread_init();  // to a thread that has only freed so far, collecting would mean nothing
  mi_collect(true);
}

void free_small_block(void* block, int64_t bytes) {
  if (is_middling(bytes)) return return_middling_block(block, bytes);
  mi_free(block);
  freed_bytes += bytes;
  if (freed_bytes < kGiveBackEvery) return;
  freed_bytes = 0;
  give_back_small_blocks();
}
#endif

int64_t mapped_bytes(int64_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

void free_block(void* data, size_t bytes, void*) { release_block(data, static_cast<int64_t>(bytes)); }
}  // namespace

void* allocate_block(int64_t bytes) {
  if (bytes < 0) return nullptr;
  if (bytes < kHugePage) return small_block(bytes ? bytes : 1);
  return bytes > INT64_MAX - 2 * kHugePage ? nullptr : map_huge_pages(static_cast<size_t>(mapped_bytes(bytes)));
}

void release_block(void* block, int64_t bytes) {
  if (!block) return;
  if (bytes < kHugePage) {
    free_small_block(block, bytes);
  } else {
    munmap(block, static_cast<size_t>(mapped_bytes(bytes)));
  }
}

void trim_blocks() {
  trim_idle_blocks();
  give_back_small_blocks();
}

Result<Ref<Buffer>> Buffer::allocate(int64_t bytes, Placement) {
  void* const block = allocate_block(bytes);
  Buffer* const made = block ? new (std::nothrow) Buffer(block, bytes, Placement::heap, free_block, nullptr) : nullptr;
  if (!made) {
    release_block(block, bytes);
    return resource_exhausted("allocate %lld bytes: the system has no memory", static_cast<long long>(bytes));
  }
  return Ref<Buffer>::adopt(made);
}

Ref<Buffer> Buffer::borrow(void* data, int64_t bytes, FreeFn free_fn, void* user) {
  return Ref<Buffer>::adopt(new Buffer(data, bytes, Placement::heap, free_fn, user));
}

Buffer::~Buffer() {
  if (free_fn_) free_fn_(data_, static_cast<size_t>(bytes_), user_);
}

}  // namespace dtg
