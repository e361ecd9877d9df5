// Blocks and buffers in cells. Who takes something out of a cell owns it, so its size is read without a race; what does not fit goes back.
#include "exec/memory_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace dtg {
namespace {

// In front of each block: how large it is.
struct Header {
  int64_t bytes;
};
constexpr int64_t kHeaderBytes = kBlockAlign;
// Larger than asked by no more than this is a fit for a buffer; a run's block may be any size, for it is soon back.
constexpr int64_t kSlackBytes = 256;

// Of an idle buffer, what counts: as few as there can be, small ones are nothing that anybody misses.
constexpr int64_t kSmallBytes = 4096;
int64_t counted(int64_t bytes) { return bytes > kSmallBytes ? bytes : 0; }

// A run's block stays for long, and where runs grow one follows the other, each a little larger. A general allocator keeps such holes for
// a while; what is mapped goes back to the system at once. From the second limit on, every block is mapped.
constexpr int64_t kMappedBytes = int64_t{64} << 10;
constexpr int64_t kMappedAnyway = int64_t{2} << 20;
bool is_mapped_here(int64_t bytes) { return bytes >= kMappedBytes && bytes < kMappedAnyway; }

void* allocate_lasting(int64_t bytes) {
  if (!is_mapped_here(bytes)) return allocate_block(bytes);
  void* const block = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

void release_lasting(void* block, int64_t bytes) {
  if (is_mapped_here(bytes)) munmap(block, static_cast<size_t>(bytes));
  else release_block(block, bytes);
}

template <class T>
bool put(std::atomic<T*>* cells, int count, T* thing) {
  for (int i = 0; i < count; ++i) {
    T* none = nullptr;
    if (!cells[i].load(std::memory_order_relaxed) && cells[i].compare_exchange_strong(none, thing, std::memory_order_acq_rel)) return true;
  }
  return false;
}

}  // namespace

// A buffer that goes back to its pool instead of dying.
class MemoryPool::Recycled final : public Buffer {
 public:
  Recycled(void* block, int64_t bytes) : Buffer(block, bytes, Placement::heap, free_block, nullptr) {}
  void leave(MemoryPool* pool) {
    revive();
    pool_ = Ref<MemoryPool>::share(pool);
  }
  static void free_block(void* data, size_t bytes, void*) { release_block(data, static_cast<int64_t>(bytes)); }

 protected:
  void last_release() override {
    // Once parked, another thread may take this buffer out again, so nothing of it is touched after.
    const Ref<MemoryPool> pool = std::move(pool_);
    pool->park(this);
  }

 private:
  friend class MemoryPool;
  Ref<MemoryPool> pool_;
};

MemoryPool::~MemoryPool() { close(); }

int64_t MemoryPool::size_of(const char* block) { return reinterpret_cast<const Header*>(block - kHeaderBytes)->bytes; }

void MemoryPool::close() {
  trim(0);
  budget_ = nullptr;
}

Result<char*> MemoryPool::allocate(int64_t bytes, const char* what) {
  bytes = std::max<int64_t>(bytes, 1);  // an empty value has an address too, and every block a size to be counted by
  const int64_t whole = align_up(bytes) + kHeaderBytes;
  if (budget_) DTG_TRY(budget_->reserve(whole, what));
  char* const memory = static_cast<char*>(allocate_lasting(whole));
  if (!memory) {
    if (budget_) budget_->release(whole);
    return resource_exhausted("allocate %lld bytes for %s", static_cast<long long>(bytes), what);
  }
  reinterpret_cast<Header*>(memory)->bytes = align_up(bytes);
  held_.fetch_add(align_up(bytes), std::memory_order_relaxed);
  return memory + kHeaderBytes;
}

void MemoryPool::free_block(char* block) {
  const int64_t bytes = size_of(block);
  held_.fetch_sub(bytes, std::memory_order_relaxed);
  release_lasting(block - kHeaderBytes, bytes + kHeaderBytes);
  if (budget_) budget_->release(bytes + kHeaderBytes);
}

Result<char*> MemoryPool::take(int64_t bytes, const char* what) {
  char* best = nullptr;
  char* small = nullptr;
  for (auto& cell : cells_) {
    if (!cell.load(std::memory_order_relaxed)) continue;
    char* block = cell.exchange(nullptr, std::memory_order_acq_rel);
    if (!block) continue;
    idle_.fetch_sub(size_of(block), std::memory_order_relaxed);
    const bool fits = size_of(block) >= bytes;
    // Mostly one plan runs again and again, and the first block is its own, or not much larger.
    if (fits && size_of(block) / 2 <= bytes && !best && !small) return block;
    char*& kept = fits ? best : small;
    // The smallest that fits, and the smallest that does not.
    if (!kept || size_of(block) < size_of(kept)) std::swap(kept, block);
    if (block) give_back(block);
  }
  if (best) {
    if (small) give_back(small);
    return best;
  }
  // One that is too small makes room for one that is not: a plan that grows with its feeds holds one block.
  if (small) free_block(small);
  auto fresh = allocate(bytes, what);
  if (fresh.ok() || idle_bytes() == 0) return fresh;
  trim(0);
  return allocate(bytes, what);
}

void MemoryPool::give_back(char* block) {
  const int64_t bytes = size_of(block);
  idle_.fetch_add(bytes, std::memory_order_relaxed);
  if (!put(cells_, kCells, block)) {
    idle_.fetch_sub(bytes, std::memory_order_relaxed);
    free_block(block);
  }
  if (idle_bytes() > std::max(idle_limit_, bytes)) trim(std::max(idle_limit_, bytes));
}

// Lets go of idle blocks, smallest first by way of what comes out of the cells, until no more than `keep` bytes are idle.
void MemoryPool::trim(int64_t keep) {
  for (auto& cell : buffers_) {
    if (keep > 0 && idle_bytes() <= keep) return;
    if (Recycled* const buffer = cell.exchange(nullptr, std::memory_order_acq_rel)) {
      idle_.fetch_sub(counted(buffer->bytes()), std::memory_order_relaxed);
      held_.fetch_sub(buffer->bytes(), std::memory_order_relaxed);
      delete buffer;
    }
  }
  while (idle_bytes() > keep) {
    char* smallest = nullptr;
    int taken = 0;
    for (auto& cell : cells_) {
      char* block = cell.exchange(nullptr, std::memory_order_acq_rel);
      if (!block) continue;
      ++taken;
      if (!smallest || size_of(block) < size_of(smallest)) std::swap(smallest, block);
      if (block && !put(cells_, kCells, block)) {
        idle_.fetch_sub(size_of(block), std::memory_order_relaxed);
        free_block(block);
      }
    }
    if (taken == 0) return;
    idle_.fetch_sub(size_of(smallest), std::memory_order_relaxed);
    free_block(smallest);
  }
}

void MemoryPool::park(Recycled* buffer) {
  const int64_t bytes = buffer->bytes();
  if (counted(bytes) > 0) idle_.fetch_add(bytes, std::memory_order_relaxed);
  if (idle_bytes() <= idle_limit_ && put(buffers_, kBufferCells, buffer)) return;
  idle_.fetch_sub(counted(bytes), std::memory_order_relaxed);
  held_.fetch_sub(bytes, std::memory_order_relaxed);
  delete buffer;
}

MemoryPool::Recycled* MemoryPool::find_buffer(int64_t bytes) {
  for (auto& cell : buffers_) {
    if (!cell.load(std::memory_order_relaxed)) continue;
    Recycled* const buffer = cell.exchange(nullptr, std::memory_order_acq_rel);
    if (!buffer) continue;
    if (counted(buffer->bytes()) > 0) idle_.fetch_sub(buffer->bytes(), std::memory_order_relaxed);
    if (buffer->bytes() >= bytes && buffer->bytes() <= 2 * bytes + kSlackBytes) return buffer;
    park(buffer);
  }
  return nullptr;
}

Status MemoryPool::check_growth(int64_t bytes, const char* what) {
  if (!budget_ || bytes <= budget_->limit() - held_bytes()) return {};
  trim(0);
  if (bytes <= budget_->limit() - held_bytes()) return {};
  return resource_exhausted("%lld bytes for %s: with the %lld that are held already it is more than the memory limit of %lld; make less of "
                            "them, or raise memory_limit_bytes of the runtime",
                            static_cast<long long>(bytes), what, static_cast<long long>(held_bytes()),
                            static_cast<long long>(budget_->limit()));
}

Result<Ref<Buffer>> MemoryPool::take_buffer(int64_t bytes) {
  Recycled* buffer = find_buffer(bytes);
  if (!buffer) {
    const int64_t whole = align_up(std::max<int64_t>(bytes, 1));
    void* const block = allocate_block(whole);
    buffer = block ? new (std::nothrow) Recycled(block, whole) : nullptr;
    if (!buffer) {
      release_block(block, whole);
      return resource_exhausted("allocate %lld bytes for a fetched value", static_cast<long long>(bytes));
    }
    held_.fetch_add(whole, std::memory_order_relaxed);
  }
  buffer->leave(this);
  return Ref<Buffer>::adopt(buffer);
}

}  // namespace dtg
