// MemoryPool: the memory that runs work in, one pool for all plans of a device. A run takes one block for its values and gives it back at
// its end; fetched values get buffers that come back when their last holder lets go. What nobody uses is bounded in bytes and is
// given to whoever fits best, so that a hundred plans together hold what runs at once and not what was ever run.
//
// Any thread; taking and giving back what is there takes no lock and allocates nothing. Owner: the runtime, and whoever holds a buffer.
#pragma once

#include <atomic>

#include "base/budget.h"
#include "base/ref.h"
#include "tensor/buffer.h"

namespace dtg {

class MemoryPool final : public RefCounted {
 public:
  // Blocks are reserved from `budget` (null: none is asked) until close(). Idle memory beyond `idle_bytes` goes back to the system,
  // but for one block that is larger by itself.
  explicit MemoryPool(MemoryBudget* budget, int64_t idle_bytes = int64_t{64} << 20) : budget_(budget), idle_limit_(idle_bytes) {}
  ~MemoryPool() override;
  // The budget is about to go, and no run is under way. Fetched values that somebody still holds stay good.
  void close();

  // At least `bytes`, aligned for tensors, contents undefined. `what` names the purpose in an error.
  Result<char*> take(int64_t bytes, const char* what);
  void give_back(char* block);
  // What a block has room for.
  static int64_t size_of(const char* block);
  // Counted memory; it comes back by itself.
  Result<Ref<Buffer>> take_buffer(int64_t bytes);

  // Whether there may be so much more of what a run decides while it is under way, such as elements of lists: with all that the pool holds
  // it stays within the budget's limit.
  Status check_growth(int64_t bytes, const char* what);

  // Gives idle memory back to the system until no more than `keep` bytes are idle.
  void trim(int64_t keep);

  // What the pool has from the system, and how much of it nobody uses; small buffers that lie idle are not counted.
  int64_t held_bytes() const { return held_.load(std::memory_order_relaxed); }
  int64_t idle_bytes() const { return idle_.load(std::memory_order_relaxed); }

 private:
  class Recycled;
  static constexpr int kCells = 8;
  static constexpr int kBufferCells = 32;

  Result<char*> allocate(int64_t bytes, const char* what);
  void free_block(char* block);
  void park(Recycled* buffer);
  Recycled* find_buffer(int64_t bytes);

  MemoryBudget* budget_;  // changes with close() only
  const int64_t idle_limit_;
  std::atomic<char*> cells_[kCells] = {};
  std::atomic<Recycled*> buffers_[kBufferCells] = {};
  std::atomic<int64_t> held_{0};
  std::atomic<int64_t> idle_{0};
};

}  // namespace dtg
