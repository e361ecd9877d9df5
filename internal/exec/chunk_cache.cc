// Finding and keeping later chunks.
#include "exec/chunk_cache.h"

#include <algorithm>
#include <cstring>

namespace dtg {
namespace {

int64_t bytes_of(const LaterChunk& chunk) {
  return static_cast<int64_t>(chunk.arena.bytes() + chunk.instructions.size() * sizeof(Instruction) + chunk.places.size() * sizeof(Place) +
                              chunk.gives.size() * sizeof(Typed));
}

}  // namespace

bool LaterChunk::fits(uint32_t in_segment, uint32_t at_position, const Slots& slots) const {
  if (segment != in_segment || position != at_position) return false;
  for (const auto& [slot, shape] : shapes) {
    if (!(slots.shape(slot) == shape)) return false;
  }
  for (const auto& [slot, seen] : values) {
    if (!seen.empty() && std::memcmp(slots.data(slot), seen.data(), seen.size()) != 0) return false;
  }
  return true;
}

Ref<LaterChunk> ChunkCache::find(uint32_t segment, uint32_t position, const Slots& slots) {
  const std::lock_guard lock(mutex_);
  Variants& list = variants(segment, position);
  const auto at = std::ranges::find_if(list, [&](const Entry& entry) { return entry.chunk->fits(segment, position, slots); });
  if (at == list.end()) return {};
  at->used = ++clock_;
  std::rotate(list.begin(), at, at + 1);
  return list.front().chunk;
}

void ChunkCache::add(Ref<LaterChunk> chunk) {
  std::vector<Ref<LaterChunk>> dropped;  // after the lock
  const std::lock_guard lock(mutex_);
  Variants& list = variants(chunk->segment, chunk->position);
  bytes_ += bytes_of(*chunk);
  list.insert(list.begin(), {std::move(chunk), ++clock_});
  if (list.size() > kVariants) {
    bytes_ -= bytes_of(*list.back().chunk);
    dropped.push_back(std::move(list.back().chunk));
    list.pop_back();
  }
  if (bytes_ > kBytes) drop_oldest(dropped);
}

// A quarter at once, as finding the oldest looks at all of them.
void ChunkCache::drop_oldest(std::vector<Ref<LaterChunk>>& dropped) {
  std::vector<uint64_t> times;
  for (const auto& [place, list] : places_) {
    for (const Entry& entry : list) times.push_back(entry.used);
  }
  const auto quarter = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 4);
  std::ranges::nth_element(times, quarter);
  const uint64_t last = std::min(*quarter, clock_ - 1);  // the newest stays
  for (auto& [place, list] : places_) {
    std::erase_if(list, [&](Entry& entry) {
      if (entry.used > last) return false;
      bytes_ -= bytes_of(*entry.chunk);
      dropped.push_back(std::move(entry.chunk));
      return true;
    });
  }
}

}  // namespace dtg
