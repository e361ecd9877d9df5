// IdleBlocks: blocks of middling size, 64 KiB to 2 MiB, between two uses. They come from the kernel and go back to it: a general allocator
// keeps what one thread allocated and another freed until the first one allocates again, so a host that drops five hundred tensors
// would wait for its memory for ever. A few are kept here, because fresh pages cost more than a lock. They are cut from chunks of huge
// pages, as matrices of this size are read whole, again and again. Process-wide; any thread.
#pragma once

#include <cstdint>

namespace dtg {

inline constexpr int64_t kIdleBlockMin = int64_t{64} << 10;
inline constexpr int64_t kIdleBlockMax = int64_t{2} << 20;  // from here on, blocks are mapped with huge pages
inline constexpr bool is_middling(int64_t bytes) { return bytes >= kIdleBlockMin && bytes < kIdleBlockMax; }

// Contents undefined, aligned to a page; null without memory. `bytes` at the return is what was asked for.
void* take_middling_block(int64_t bytes);
void return_middling_block(void* block, int64_t bytes);

// What lies idle, no more than 16 MiB; and gives it all back to the system.
int64_t idle_block_bytes();
void trim_idle_blocks();

}  // namespace dtg
