// ChunkCache: chunks that were prepared while runs were under way, for the shapes and values that they were met with. Bounded in number at
// each place of a plan, and in bytes; least recently used goes first; a run that uses one holds it.
//
// Owner: the plan. Any thread; a chunk is immutable once it is here.
#pragma once

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "exec/program.h"

namespace dtg {

// A chunk, and what it holds for.
struct LaterChunk final : RefCounted {
  uint32_t segment = 0;
  uint32_t position = 0;
  std::vector<std::pair<uint32_t, Shape>> shapes;              // slot -> shape
  std::vector<std::pair<uint32_t, std::vector<char>>> values;  // slot -> bytes that were looked at
  Arena arena;
  std::vector<Tensor> tensors;  // constants it refers to
  std::vector<Ref<RefCounted>> resources;
  Instructions instructions;
  Chunk chunk;
  // Its memory is leased from the step: bytes, and where its values lie in it.
  int64_t bytes = 0;
  std::vector<Place> places;
  // The same on the device whose stream it runs on.
  int64_t device_bytes = 0;
  std::vector<Place> device_places;
  std::vector<Typed> gives;  // shapes of slots whose shape the plan did not know

  bool fits(uint32_t in_segment, uint32_t at_position, const Slots& slots) const;
};

class ChunkCache {
 public:
  Ref<LaterChunk> find(uint32_t segment, uint32_t position, const Slots& slots);
  void add(Ref<LaterChunk> chunk);
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kVariants = 64;
  static constexpr int64_t kBytes = int64_t{8} << 20;
  struct Entry {
    Ref<LaterChunk> chunk;
    uint64_t used = 0;  // when
  };
  using Variants = std::vector<Entry>;
  // Those at one place of the plan, most recently used first. No chunk, before the first is added.
  Variants& variants(uint32_t segment, uint32_t position) { return places_[uint64_t{segment} << 32 | position]; }
  void drop_oldest(std::vector<Ref<LaterChunk>>& dropped);

  std::mutex mutex_;
  std::unordered_map<uint64_t, Variants> places_;
  uint64_t clock_ = 0;
  std::atomic<int64_t> bytes_{0};  // changed under the lock
};

}  // namespace dtg
