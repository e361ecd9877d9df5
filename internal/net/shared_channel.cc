// The part of a channel that deals in shared memory: what is put into slots, what is taken out of them, and the frames about it. See
// channel.h for threads.
#include <cstring>

#include "net/channel.h"

namespace dtg {
namespace {

// Copied before what there is leaves: the other end reads while more is copied.
constexpr size_t kAtOnce = size_t{1} << 20;

}  // namespace

void Channel::share_memory(MemoryBudget& budget) {
  if (!passes_descriptors() || checks_payloads_ || in_slots_ || !open_) return;
  out_slots_ = std::make_unique<OutSlots>(budget);
  in_slots_ = std::make_unique<InSlots>();
}

void Channel::tidy() {
  wire::Segment gone;
  if (out_slots_ && out_slots_->tidy(&gone)) send(wire::make_frame(gone));
}

Result<size_t> Channel::write_with(const iovec*, int, int) { return internal_error("no descriptor can travel here"); }

// ---- out ---------------------------------------------------------------------------------------------------------------------

bool Channel::wants_slot(const OutFrame& frame) const {
  return frame.data && frame.payload && frame.payload_bytes >= OutSlots::kFromBytes && frame.payload_bytes <= wire::kChunkBytes &&
         out_slots_ && out_slots_->granted();
}

// The first large payloads ask for slots, and go through the socket until there are some.
void Channel::fill_slots() {
  if (!out_slots_) return;
  size_t bytes = 0;
  for (const auto& frame : data_) {
    if (frame->slot >= 0) return;  // those leave first
    const bool large = frame->payload && frame->payload_bytes >= OutSlots::kFromBytes;
    if (large && out_slots_->may_open()) open_slots();
    if (!wants_slot(*frame)) return;
    const int slot = out_slots_->put(frame->payload, frame->payload_bytes);
    if (slot < 0) return;
    bytes += frame->payload_bytes;
    shared_bytes_ += frame->payload_bytes;
    frame->slot = slot;
    wire::place_in_slot(frame->head, static_cast<uint32_t>(slot));
    frame->payload = nullptr;
    frame->payload_bytes = 0;
    if (bytes >= kAtOnce) return;
  }
}

void Channel::open_slots() {
  Descriptor descriptor;
  auto segment = out_slots_->open(&descriptor);
  // Where there is no memory for it the socket will do.
  if (segment.ok()) queue_control(wire::make_frame(segment.value()), std::move(descriptor));
}

// ---- in ----------------------------------------------------------------------------------------------------------------------

Status Channel::descriptor_came(Descriptor descriptor) {
  if (descriptor_upto_ != 0) return data_loss("a second descriptor came before the frame that the first belongs to");
  descriptor_lost_ = descriptor.get() < 0;
  descriptor_ = std::move(descriptor);
  descriptor_upto_ = UINT64_MAX;  // read_some() knows better
  return {};
}

// The frame that it belongs to would have begun by now.
Status Channel::check_descriptor() const {
  const uint64_t parsed = bytes_in_ - (end_ - begin_);
  if (descriptor_upto_ == 0 || parsed < descriptor_upto_) return {};
  return data_loss("a descriptor came with a %s frame, which needs none", wire::kind_name(prefix_.kind));
}

Status Channel::take_from_slot() {
  if (!in_slots_) return data_loss("a payload was said to lie in shared memory, which was not agreed on");
  DTG_ASSIGN(const char* const from, in_slots_->at(prefix_.slot, prefix_.payload_bytes));
  if (landing_.data && landing_.may_be_lent) lent_ = from;
  else if (landing_.data) std::memcpy(landing_.data, from, static_cast<size_t>(prefix_.payload_bytes));
  payload_left_ = 0;
  shared_bytes_ += prefix_.payload_bytes;
  in_slots_->done(prefix_.slot);  // the other end hears of it after the frame was received
  return {};
}

Status Channel::own_frame() {
  if (!trusted_) return unauthenticated("a %s frame came before hello", wire::kind_name(prefix_.kind));
  if (!in_slots_) return data_loss("a %s frame came, which was not agreed on", wire::kind_name(prefix_.kind));
  if (prefix_.kind == wire::Kind::release) {
    DTG_TRY(check_descriptor());
    wire::Release release;
    DTG_TRY(wire::decode(header_, release));
    DTG_TRY(out_slots_->release(release));
    progress_ns_ = loop_.clock().monotonic_ns();
    flush();
    return {};
  }
  wire::Segment segment;
  DTG_TRY(wire::decode(header_, segment));
  // A descriptor that came in the same read belongs to the next segment, if anything of that read is left.
  const bool is_next_ones = segment.slots == 0 && bytes_in_ - (end_ - begin_) < descriptor_upto_;
  if (is_next_ones) return in_slots_->change(segment, Descriptor(), false);
  const Descriptor descriptor = std::move(descriptor_);
  descriptor_upto_ = 0;
  return in_slots_->change(segment, descriptor, std::exchange(descriptor_lost_, false));
}

void Channel::give_back() {
  if (!open_ || !in_slots_ || !in_slots_->has_released()) return;
  queue_control(wire::make_frame(in_slots_->released()));
  flush();
}

}  // namespace dtg
