// Finding and keeping later chunks.
#include "exec/chunk_cache.h"

#include <cstring>

namespace dtg {
namespace {

size_t bytes_of(const LaterChunk& chunk) { return chunk.arena.bytes() + chunk.chunk.bytes_of_itself(); }

}  // namespace

bool LaterChunk::fits(uint32_t in_segment, uint32_t at_position, const Slots& slots) const {
  if (segment != in_segment || position != at_position) return false;
  for (const auto& [slot, shape] : shapes) {
    if (!(slots.shape(slot) == shape)) return false;
  }
  for (const auto& [slot, bytes] : values) {
    if (!bytes.empty() && std::memcmp(slots.data(slot), bytes.data(), bytes.size()) != 0) return false;
  }
  return true;
}

Ref<LaterChunk> ChunkCache::find(uint32_t segment, uint32_t position, const Slots& slots) {
  const std::lock_guard lock(mutex_);
  for (auto at = chunks_.begin(); at != chunks_.end(); ++at) {
    if (!(*at)->fits(segment, position, slots)) continue;
    Ref<LaterChunk> found = *at;
    chunks_.erase(at);
    chunks_.push_front(found);
    return found;
  }
  return {};
}

void ChunkCache::add(Ref<LaterChunk> chunk) {
  std::vector<Ref<LaterChunk>> dropped;  // after the lock
  const std::lock_guard lock(mutex_);
  bytes_ += bytes_of(*chunk);
  chunks_.push_front(std::move(chunk));
  while (chunks_.size() > 1 && (chunks_.size() > kChunks || bytes_ > kBytes)) {
    bytes_ -= bytes_of(*chunks_.back());
    dropped.push_back(std::move(chunks_.back()));
    chunks_.pop_back();
  }
}

}  // namespace dtg
