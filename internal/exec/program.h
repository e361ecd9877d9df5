// Program: a plan in the form that runs. Straight-line segments of instructions over numbered slots, the
// events between them, and what goes in and out. Made by the planner, immutable but for the chunks that
// it prepares when shapes become known; shared by all frames.
//
// A segment is a list of instructions that runs in order on one thread at a time. It starts when its
// pending count reaches zero: each segment it needs and each event it needs counts one. Events are ends of
// blocking instructions (dequeue, take, receive) and hand-overs between devices.
//
// A segment is cut into chunks. The first chunk is prepared with the plan; where a shape depends on data,
// the chunk ends, and the rest is prepared for the concrete shapes when they are first met.
#pragma once

#include <vector>

#include "exec/kernel.h"

namespace dtg {

class Frame;
class Variable;

struct Chunk {
  std::vector<Instruction> instructions;
  // Later chunks lease their memory from the step: bytes, and where its values lie in it.
  int64_t bytes = 0;
  struct Place {
    uint32_t slot;
    int64_t offset;
  };
  std::vector<Place> places;
  // Later chunks: shapes it gives to slots whose shape the plan did not know.
  struct Typed {
    uint32_t slot;
    Shape shape;
  };
  std::vector<Typed> shapes;
  uint32_t end = 0;  // position in the segment's node list where the next chunk begins
  bool last = true;  // nothing follows
};

struct Segment {
  const Chunk* first = nullptr;
  uint32_t waits = 0;                // segments and events to wait for
  std::vector<uint32_t> successors;  // segments that wait for this one
  std::vector<uint32_t> raises;      // events that its instructions signal
};

struct Event {
  std::vector<uint32_t> successors;  // segments that wait for this one
};

struct Feed {
  uint32_t slot = 0;
  DType dtype = DType::invalid;
  Shape shape;
};

struct Fetch {
  uint32_t slot = 0;
  DType dtype = DType::invalid;
  Shape shape;           // not valid when dynamic
  bool dynamic = false;  // the shape is known after the run
  bool direct = false;   // the kernel writes into the fetched buffer; otherwise it is copied at the end
};

class Program {
 public:
  virtual ~Program() = default;
  // The chunk of `segment` that begins at `position`, for the shapes that `frame` now knows.
  virtual Result<const Chunk*> next_chunk(Frame& frame, uint32_t segment, uint32_t position) const = 0;

  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<Event>& events() const { return events_; }
  const std::vector<Feed>& feeds() const { return feeds_; }
  const std::vector<Fetch>& fetches() const { return fetches_; }
  uint32_t slot_count() const { return slot_count_; }
  uint32_t pin_count() const { return pin_count_; }
  int64_t frame_bytes() const { return frame_bytes_; }
  const std::vector<Chunk::Place>& places() const { return places_; }
  struct Constant {
    uint32_t slot;
    void* data;
  };
  const std::vector<Constant>& constants() const { return constants_; }
  bool has_dynamic() const { return dynamic_; }

 protected:
  std::vector<Segment> segments_;
  std::vector<Event> events_;
  std::vector<Feed> feeds_;
  std::vector<Fetch> fetches_;
  std::vector<Chunk::Place> places_;  // values of first chunks, in the frame's own memory
  std::vector<Constant> constants_;   // constants and resource handles
  uint32_t slot_count_ = 0;
  uint32_t pin_count_ = 0;
  int64_t frame_bytes_ = 0;
  bool dynamic_ = false;
};

}  // namespace dtg
