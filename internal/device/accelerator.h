// Accelerator: the seam between the executor and a device with memory of its own. It has a type, a memory space whose addresses the host
// must not follow, and a stream: work is enqueued in order, runs later, and its end is an event that comes later still, with the error
// if there was one. The executor hands over whole chunks of a segment and makes the successors ready when their ends are told; copies
// between spaces are instructions like others, on the stream of the device that they leave or reach. `emu` implements it for tests;
// devices with drivers do it behind a table of C functions.
//
// Owner: the task whose device it is, and by count the plans and variables that use it. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/ref.h"
#include "base/status.h"
#include "tensor/buffer.h"

namespace dtg {

// A unit of work for a stream. Whoever enqueues it owns it until completed() is called, or until execute() has said that nothing will be.
class StreamWork {
 public:
  virtual ~StreamWork() = default;
  // On the stream, in its turn. True: completed() follows. False: it goes on elsewhere, and may be enqueued again from now on.
  virtual bool execute() = 0;
  // All that execute() did is there for others to see. At least one step of the stream after it.
  virtual void completed() = 0;
  StreamWork* next = nullptr;  // the stream's, while it is enqueued
};

// Memory of a device. Its addresses are for the device's own kernels and copies.
class DeviceMemory : public RefCounted {
 public:
  // At least `bytes`, aligned for tensors; RESOURCE_EXHAUSTED with the device, `what` it was for, and what there is. What was given back
  // before and has the same size is taken without an allocation on the host.
  virtual Result<char*> take(int64_t bytes, const char* what) = 0;
  virtual void give_back(char* block) = 0;
  virtual bool holds(const void* address) const = 0;
  // Beyond this nothing can be had.
  virtual int64_t limit() const = 0;
  virtual int64_t used() const = 0;
  // Counted memory, for what outlives a run.
  Result<Ref<Buffer>> take_buffer(int64_t bytes, const char* what);
};

class Accelerator : public RefCounted {
 public:
  // Ways in which a device for tests breaks the rules, so that tests can show that each is found.
  enum class Mutant : uint8_t {
    none,
    skips_wait,    // who comes after a copy does not wait for it
    frees_early,   // memory of a run goes back while the stream still works in it
    reads_device,  // the host reads what it should have copied
    swaps_streams  // work goes to another device's stream
  };

  // "/job:localhost/replica:0/task:0/device:EMU:0"
  virtual const std::string& name() const = 0;
  virtual const Ref<DeviceMemory>& memory() const = 0;
  virtual void enqueue(StreamWork* work) = 0;
  // Between the host's memory and the device's, either way; returns when it is done. Not part of a run.
  virtual Status copy(void* to, const void* from, int64_t bytes) = 0;
  virtual Mutant mutant() const { return Mutant::none; }
  // Does it want each instruction looked at: are the operands made, and where they should be?
  virtual bool is_checking() const { return false; }
};

}  // namespace dtg
