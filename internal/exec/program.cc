// What a program weighs.
#include "exec/program.h"

namespace dtg {

size_t Program::instruction_count() const {
  size_t count = 0;
  for (const Chunk& chunk : chunks) count += chunk.instructions.size();
  return count;
}

int64_t Program::bytes() const {
  size_t bytes = arena.bytes() + places.size() * sizeof(Chunk::Place) + constants.size() * sizeof(Constant);
  for (const Chunk& chunk : chunks) bytes += chunk.bytes_of_itself();
  for (const Segment& segment : segments) bytes += sizeof segment + (segment.successors.size() + segment.raises.size()) * sizeof(uint32_t);
  for (const Event& event : events) bytes += sizeof event + event.successors.size() * sizeof(uint32_t);
  return static_cast<int64_t>(bytes) + folded_bytes;
}

}  // namespace dtg
