// Slots: how payloads go to a process of the same host without passing through the socket. Each end has a segment of a few slots; who
// sends copies a payload into a free one, who receives copies it out and gives the slot back. Few slots, the last one used first: what
// is in them is in the cache of the processor when it is read. What is copied out is the receiver's alone before anybody looks at it, so
// that a peer which writes once more changes nothing.
//
// Both belong to a channel, and to the loop's thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/budget.h"
#include "net/segment.h"
#include "wire/messages.h"

namespace dtg {

// The sender's.
class OutSlots {
 public:
  static constexpr uint32_t kSlots = 8;
  // What is smaller travels within its frame. From here on a slot costs less of the processor than the socket, as measured: 0.8 of it at
  // 48 KiB, 0.5 at 256 KiB, 0.4 at 1 MiB.
  static constexpr size_t kFromBytes = size_t{32} << 10;

  explicit OutSlots(MemoryBudget& budget) : budget_(budget) {}
  ~OutSlots() { drop(); }

  // No segment has been made, and one may be tried.
  bool may_open() const { return !segment_ && !failed_; }
  // Makes one. What it answers goes to the other end, with the descriptor. Errors: there is no memory for it now, until tidy().
  Result<wire::Segment> open(Descriptor* descriptor);
  // The descriptor could not be sent.
  void fail();
  // The other end has it: slots that are not free now come back.
  bool granted() const { return granted_; }
  // Copies; the number of the slot, or -1 where none is free.
  int put(const void* payload, size_t bytes);
  // The other end is through with these.
  Status release(const wire::Release& slots);
  // What was put there never left.
  void take_back(uint32_t slot);
  // From time to time. Gives the segment up where nothing was put since the last time and nothing is lent; then what it answers goes
  // to the other end.
  bool tidy(wire::Segment* gone);

 private:
  void drop();

  MemoryBudget& budget_;
  std::unique_ptr<Segment> segment_;
  uint64_t number_ = 0;
  std::vector<uint32_t> free_;
  std::vector<bool> lent_;
  bool granted_ = false;
  bool failed_ = false;
  bool used_ = false;
};

// The receiver's. What comes in about it was made by another process.
class InSlots {
 public:
  static constexpr uint32_t kSlotsMost = wire::Release::kSlotsMost;

  // The other end has another segment, or none any more. `descriptor`: what came with it; none, and `lost`: this process had no room
  // for it, so the other end goes on without.
  Status change(const wire::Segment& segment, const Descriptor& descriptor, bool lost);
  // What lies in that slot.
  Result<const char*> at(uint32_t slot, uint64_t bytes) const;
  // It is read; released() tells the other end.
  void done(uint32_t slot) { released_.slots.push_back(slot); }
  wire::Release released() { return std::exchange(released_, {released_.number, {}}); }
  bool has_released() const { return !released_.slots.empty(); }

 private:
  std::unique_ptr<Segment> segment_;
  uint64_t slot_bytes_ = 0;
  uint32_t slots_ = 0;
  wire::Release released_;
};

}  // namespace dtg
