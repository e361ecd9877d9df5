// ChunkCache: a plan with more cuts than any number finds all its chunks again; variants of one place are bounded, and bytes are.
#include "exec/chunk_cache.h"

#include <gtest/gtest.h>

#include "exec/memory_pool.h"
#include "exec/slots.h"

namespace dtg {
namespace {

Ref<LaterChunk> chunk_at(uint32_t position, int64_t size, size_t bytes = 0) {
  auto chunk = make_ref<LaterChunk>();
  chunk->position = position;
  chunk->shapes.emplace_back(0, Shape::of({size}));
  if (bytes > 0) (void)chunk->arena.allocate(bytes, 1);
  return chunk;
}

class ChunkCacheTest : public ::testing::Test {
 protected:
  bool has(uint32_t position, int64_t size) {
    slots.set_shape(0, Shape::of({size}));
    return static_cast<bool>(cache.find(0, position, slots));
  }
  MemoryPool memory{nullptr};
  Slots slots{1, 0, true, memory};
  ChunkCache cache;
};

TEST_F(ChunkCacheTest, EveryPlaceOfALongPlan) {
  for (uint32_t position = 0; position < 500; ++position) cache.add(chunk_at(position, 3));
  for (uint32_t position = 0; position < 500; ++position) EXPECT_TRUE(has(position, 3)) << position;
  EXPECT_FALSE(has(0, 4));
  EXPECT_FALSE(has(500, 3));
}

TEST_F(ChunkCacheTest, TheVariantThatWasNotUsedForLongestGoes) {
  for (int64_t size = 0; size < 64; ++size) cache.add(chunk_at(0, size));
  EXPECT_TRUE(has(0, 0));
  cache.add(chunk_at(0, 64));
  EXPECT_TRUE(has(0, 0));
  EXPECT_TRUE(has(0, 64));
  EXPECT_FALSE(has(0, 1));
}

TEST_F(ChunkCacheTest, BytesAreBounded) {
  for (uint32_t position = 0; position < 64; ++position) cache.add(chunk_at(position, 3, size_t{1} << 20));
  int kept = 0;
  for (uint32_t position = 0; position < 64; ++position) kept += has(position, 3) ? 1 : 0;
  EXPECT_GE(kept, 1);
  EXPECT_LE(kept, 9);
  EXPECT_TRUE(has(63, 3)) << "the newest";
}

}  // namespace
}  // namespace dtg
