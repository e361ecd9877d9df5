// Slots: lending and giving back. See slots.h; on the loop's thread.
#include "net/slots.h"

#include <cstring>

namespace dtg {

Result<wire::Segment> OutSlots::open(Descriptor* descriptor) {
  constexpr auto kBytes = static_cast<int64_t>(kSlots * wire::kChunkBytes);
  failed_ = true;
  DTG_TRY(budget_.reserve(kBytes, "memory shared with another process"));
  auto segment = Segment::make(static_cast<size_t>(kBytes), descriptor);
  if (!segment.ok()) {
    budget_.release(kBytes);
    return segment.status();
  }
  segment_ = segment.take();
  lent_.assign(kSlots, true);  // until the other end has it
  failed_ = false;
  used_ = true;
  return wire::Segment{++number_, kSlots, wire::kChunkBytes};
}

void OutSlots::fail() {
  drop();
  failed_ = true;
}

int OutSlots::put(const void* payload, size_t bytes) {
  if (free_.empty()) return -1;
  const uint32_t slot = free_.back();
  free_.pop_back();
  lent_[slot] = true;
  used_ = true;
  std::memcpy(segment_->data() + slot * wire::kChunkBytes, payload, bytes);
  return static_cast<int>(slot);
}

Status OutSlots::release(const wire::Release& release) {
  if (release.number != number_ || !segment_) return {};  // given up meanwhile
  for (uint32_t slot : release.slots) {
    if (slot >= lent_.size() || !lent_[slot]) return data_loss("the other end gave slot %u back, which it does not have", slot);
    lent_[slot] = false;
    free_.push_back(slot);
  }
  granted_ = true;
  return {};
}

void OutSlots::take_back(uint32_t slot) {
  lent_[slot] = false;
  free_.push_back(slot);
}

bool OutSlots::tidy(wire::Segment* gone) {
  failed_ = false;
  if (!segment_ || std::exchange(used_, false) || (granted_ && free_.size() < kSlots)) return false;
  drop();
  *gone = wire::Segment{++number_, 0, 0};
  return true;
}

void OutSlots::drop() {
  if (!segment_) return;
  budget_.release(static_cast<int64_t>(segment_->bytes()));
  segment_ = nullptr;
  granted_ = false;
  free_.clear();
  lent_.clear();
}

Status InSlots::change(const wire::Segment& segment, const Descriptor& descriptor, bool lost) {
  if (segment.number <= released_.number) return data_loss("a segment of shared memory came under a number that is over");
  segment_ = nullptr;
  slots_ = 0;
  released_ = {segment.number, {}};
  if (segment.slots == 0) {
    return descriptor.get() < 0 ? Status() : data_loss("a descriptor came with the word that a segment of shared memory is gone");
  }
  if (segment.slots > kSlotsMost || segment.slot_bytes == 0 || segment.slot_bytes > wire::kChunkBytes) {
    return resource_exhausted("%u slots of %llu bytes of shared memory were announced; up to %u of %llu are accepted", segment.slots,
                              static_cast<unsigned long long>(segment.slot_bytes), kSlotsMost,
                              static_cast<unsigned long long>(wire::kChunkBytes));
  }
  if (descriptor.get() < 0) return lost ? Status() : data_loss("shared memory was announced, but its descriptor did not come");
  auto mapped = Segment::map(descriptor, static_cast<size_t>(segment.slots * segment.slot_bytes));
  if (mapped.status().code() == Code::resource_exhausted) return {};
  DTG_ASSIGN(segment_, std::move(mapped));
  slots_ = segment.slots;
  slot_bytes_ = segment.slot_bytes;
  for (uint32_t i = slots_; i > 0; --i) done(i - 1);
  return {};
}

Result<const char*> InSlots::at(uint32_t slot, uint64_t bytes) const {
  if (slot < slots_ && bytes <= slot_bytes_) return static_cast<const char*>(segment_->data() + slot * slot_bytes_);
  return data_loss("%llu bytes were said to lie in slot %u of shared memory, which has %u slots of %llu bytes",
                   static_cast<unsigned long long>(bytes), slot, slots_, static_cast<unsigned long long>(slot_bytes_));
}

}  // namespace dtg
