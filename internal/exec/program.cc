// What a program weighs.
#include "exec/program.h"

namespace dtg {

int64_t Program::bytes() const {
  size_t bytes =
      arena.bytes() + places.size() * sizeof(Place) + lasting.size() * sizeof(LastingValue) + constants.size() * sizeof(Constant);
  bytes += instructions.size() * sizeof(Instruction) + segments.size() * sizeof(Chunk) + stops.size() * sizeof(Stop) +
           waits.size() * sizeof(uint32_t) + after_segment.bytes() + after_event.bytes() + raised.bytes();
  return static_cast<int64_t>(bytes) + folded_bytes;
}

}  // namespace dtg
