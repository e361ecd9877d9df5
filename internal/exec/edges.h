// Edges: how values leave and enter a part of a plan while it runs. An edge is a number fixed at plan time; the
// step knows who is at the other end. Kernels see only this; sockets, shared memory and the like implement it.
//
// Owner: whoever runs the step; it outlives the run. Any thread. No call blocks: each ends by its completion, on
// success, when the other end failed, and when the step is aborted.
#pragma once

#include <cstdint>

#include "exec/completion.h"

namespace dtg {

class Edges {
 public:
  virtual ~Edges() = default;
  // Sends a value to the other end of the edge. `done` when the memory is not needed any more.
  virtual void put(uint32_t edge, DType dtype, const Shape& shape, const void* data, Completion done) = 0;
  // Receives the value of an edge into `into`; a null `into` means that its shape is known only now, and then
  // output 0 of the instruction is set to memory that the step keeps.
  virtual void take(uint32_t edge, void* into, Completion done) = 0;
  // Ends when the part that runs on another task has ended, with its outcome.
  virtual void join(uint32_t task, Completion done) = 0;
  // Of a worker's step: it was made, whatever becomes of the run; or the run came to nothing, so whoever asked for it may make it once
  // more.
  virtual void note_step(bool made) = 0;
};

}  // namespace dtg
