// Program: a plan in the form that runs. Straight-line segments of instructions over numbered slots, the
// events between them, and what goes in and out. Made by the planner, immutable, shared by all frames.
//
// A segment is a list of instructions that runs in order on one thread at a time. It starts when its
// pending count reaches zero: each segment it needs and each event it needs counts one. Events are ends of
// blocking instructions (dequeue, take, receive) and hand-overs between devices. It may wait for more on its way, at a stop, which has a
// count of its own.
//
// A segment is cut into chunks. The first chunk is prepared with the plan; where a shape depends on data,
// the chunk ends, and the rest is prepared for the concrete shapes when they are first met.
#pragma once

#include <span>
#include <vector>

#include "base/lists.h"
#include "device/accelerator.h"
#include "exec/collectives.h"
#include "exec/kernel.h"

namespace dtg {

using Instructions = std::vector<Instruction>;

struct Chunk {
  std::span<const Instruction> instructions;
  uint32_t stop = 0, stops_end = 0;  // its stops, in Program::stops
  uint32_t planned = 0;              // the planner's segment that goes on where this ends
  uint32_t end = 0;                  // position in the node list of that where the next chunk begins
  bool last = true;                  // nothing follows
};

// Where a segment waits in the midst of its first chunk.
struct Stop {
  uint32_t segment;
  uint32_t at;  // the instruction in front of which it waits
};

// Where the value of a slot lies in a block.
struct Place {
  uint32_t slot;
  int64_t offset;
};

// A value that a kernel of the program may keep beyond the run (PrepareContext::keeps): it is made in memory of its own in every run, so
// that keeping it is no copy.
struct LastingValue {
  uint32_t slot;
  int64_t bytes;
};

// The shape of a slot.
struct Typed {
  uint32_t slot;
  Shape shape;
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

// The whole of it. Plain data: who runs it, in what memory and how often at a time is the business of frames.
struct Program {
  std::vector<Chunk> segments;  // the first chunk of each
  // By segment: all that it does before its first stop is to begin to receive.
  std::vector<bool> receives_first;
  std::vector<Stop> stops;      // those of a segment stand together, as it comes to them
  std::vector<uint32_t> waits;  // per segment, then per stop: segments and events to wait for; at a stop the segment itself counts as one
  size_t events = 0;
  Lists after_segment;  // per segment: segments that wait for it
  Lists after_event;    // per event: who waits for it, segment s as s and stop k as segments.size() + k
  Lists raised;         // per segment: events that its instructions signal
  std::vector<Feed> feeds;
  std::vector<Fetch> fetches;
  std::vector<Place> places;          // values of first chunks, in the run's block
  std::vector<LastingValue> lasting;  // by slot
  // A device with memory of its own that the program uses: what a run takes there, and what lies in it.
  struct Part {
    Ref<Accelerator> device;
    int64_t bytes = 0;
    std::vector<Place> places;
    std::string largest;  // of the values, for an error
  };
  std::vector<Part> parts;      // space k of a value or a segment is parts[k - 1]; 0 is the host
  std::vector<uint32_t> lanes;  // per segment: the space whose stream it runs on; empty where all is the host's
  // What a device that checks may know of a slot; empty where all is the host's.
  struct Home {
    uint8_t space = 0;
    bool exempt = false;  // a handle, or memory that somebody else set
    bool made = false;    // by an instruction on a device
  };
  std::vector<Home> homes;
  std::vector<Typed> shapes;  // that first chunks give to slots whose shape was not known before
  struct Constant {
    uint32_t slot;
    void* data;
  };
  std::vector<Constant> constants;  // constants and resource handles
  uint32_t slot_count = 0;
  uint32_t pin_count = 0;
  int64_t frame_bytes = 0;   // of the block that a run works in
  int64_t folded_bytes = 0;  // of constants that the planner computed; the others are the graph's
  bool open = false;         // some shapes are known only while it runs
  bool blocking = false;     // it may wait for others
  bool straight = false;     // one segment that never stops on its way, or none
  bool light =
      false;  // the host's, of few kernels that touch little memory and call no function: whoever brings what it waits for may run it
  bool small = false;       // one segment of the host's that waits for no queue and no task, calls no function and touches little memory
  CollectiveDuties duties;  // to groups of tasks
  std::string name;         // of the function, where it is the body of one

  // What the above points to.
  Arena arena;                // argument blocks and operand lists
  Instructions instructions;  // of all first chunks
  std::vector<Tensor> tensors;
  std::vector<Ref<RefCounted>> resources;

  // Memory that the program itself takes, for whoever keeps many of them.
  int64_t bytes() const;
};

struct LaterChunk;

// Where the chunks come from that are prepared while a run is under way. Implemented by the plan.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // The chunk of the planner's `segment` that begins at `position`, for what `slots` now know; kept by them until the run ends.
  virtual Result<const LaterChunk*> next_chunk(Slots& slots, uint32_t segment, uint32_t position) = 0;
};

}  // namespace dtg
