// Buffer: a counted block of memory with a placement and a way to free it. Tensors, variables and landing
// zones of the network all stand on buffers; nothing assumes malloc. Any thread may hold a Ref; who may
// write is decided above.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ref.h"
#include "base/status.h"

namespace dtg {

// Where memory lives. Pinned and shared are asked for by those who will move the bytes to a device or to
// another process; an allocator that has none answers with heap memory and says so in the buffer.
enum class Placement : uint8_t { heap, pinned, shared };

// Which processor reaches the bytes directly.
enum class MemoryKind : uint8_t { host, cuda };

class Buffer : public RefCounted {
 public:
  using FreeFn = void (*)(void* data, size_t bytes, void* user);

  // Owned memory, aligned to 64 bytes, contents undefined. Blocks of 64 KiB and more come straight from the kernel (idle_blocks.h), of
  // 2 MiB and more with huge pages advised.
  static Result<Ref<Buffer>> allocate(int64_t bytes, Placement placement = Placement::heap);
  // Memory of someone else; `free_fn` (may be null) is called once, when the last Ref goes.
  static Ref<Buffer> borrow(void* data, int64_t bytes, FreeFn free_fn, void* user);

  ~Buffer() override;
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Placement placement() const { return placement_; }
  MemoryKind kind() const { return MemoryKind::host; }

 protected:
  Buffer(void* data, int64_t bytes, Placement placement, FreeFn free_fn, void* user)
      : data_(data), bytes_(bytes), free_fn_(free_fn), user_(user), placement_(placement) {}

 private:
  void* const data_;
  const int64_t bytes_;
  const FreeFn free_fn_;
  void* const user_;
  const Placement placement_;
};

// Raw blocks from the same source, for arenas and pools that keep their own books. `bytes` at release is
// what was asked for. Null when the system has no memory.
void* allocate_block(int64_t bytes);
void release_block(void* block, int64_t bytes);
// Gives the system what lies idle between blocks: all of it that this thread can reach.
void trim_blocks();

// Alignment of every block and of every tensor inside an arena.
inline constexpr int64_t kBlockAlign = 64;
inline constexpr int64_t align_up(int64_t bytes) { return (bytes + kBlockAlign - 1) / kBlockAlign * kBlockAlign; }

}  // namespace dtg
