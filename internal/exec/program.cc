// What a program weighs.
#include "exec/program.h"

namespace dtg {

size_t Program::instruction_count() const {
  size_t count = 0;
  for (const Chunk& chunk : chunks) count += chunk.instructions.size();
  return count;
}

int64_t Program::bytes() const {
  size_t bytes = arena.bytes() + places.size() * sizeof(Place) + constants.size() * sizeof(Constant);
  for (const Chunk& chunk : chunks) bytes += chunk.bytes_of_itself();
  bytes += segments.size() * sizeof(Segment) + after_segment.bytes() + after_event.bytes() + raised.bytes();
  return static_cast<int64_t>(bytes) + folded_bytes;
}

}  // namespace dtg
