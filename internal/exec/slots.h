// Slots: the operands of one run. Each numbered slot says where its value is; where data decides a shape, what it is; and the run's
// borrowings are kept here until its end: memory leased for such values, objects that others gave, pins of
// variables.
//
// Owner: the frame that runs, or whoever runs a kernel by itself. Segments of one run may use different slots at the same time.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/ref.h"
#include "base/spin_lock.h"
#include "exec/value_room.h"
#include "tensor/tensor.h"

namespace dtg {

class DeviceMemory;
class MemoryPool;
class Variable;

class Slots {
 public:
  // `open`: some slots get their shapes only while the run is under way. The pool outlives the slots.
  Slots(uint32_t count, uint32_t pins, bool open, MemoryPool& memory);
  ~Slots() { release(); }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  void* const* table() const { return table_.get(); }
  void* data(uint32_t slot) const { return table_[slot]; }
  void bind(uint32_t slot, void* data) { table_[slot] = data; }
  const Shape& shape(uint32_t slot) const { return shapes_[slot]; }
  void set_shape(uint32_t slot, const Shape& shape) {
    if (shapes_) shapes_[slot] = shape;
  }

  MemoryPool& memory() const { return memory_; }

  // Memory for a value of that type until release(); the slot points at it and has that shape. `device`: where the memory is; null: the
  // host's.
  Result<void*> lease(uint32_t slot, DType dtype, const Shape& shape, DeviceMemory* device = nullptr);
  // Plain memory until release().
  Result<char*> lease_block(int64_t bytes, const char* what, DeviceMemory* device = nullptr);
  // The slot points at someone else's memory; `holder` (may be null) is kept until release().
  void hold(uint32_t slot, void* data, const Shape& shape, Ref<RefCounted> holder);
  void keep(Ref<RefCounted> holder);

  // The memory of a value that may outlive the run (Program::lasting), the `k`th of `count` such, in the order of their slots.
  void bind_lasting(size_t k, size_t count, uint32_t slot, ValueRoom::Piece piece) {
    if (lasting_.size() != count) lasting_.resize(count);
    table_[slot] = static_cast<char*>(piece.block->data()) + piece.offset;
    lasting_[k] = {slot, std::move(piece)};
  }
  // Null: the value's memory is the run's.
  const ValueRoom::Piece* lasting(uint32_t slot) const {
    const auto at = std::ranges::lower_bound(lasting_, slot, {}, &Lasting::slot);
    return at != lasting_.end() && at->slot == slot ? &at->piece : nullptr;
  }

  // Pins are numbered by the plan; one instruction pins, and a later one or release() unpins.
  void pin(uint32_t number, Variable* variable, void* version) { pins_[number] = {variable, version}; }
  void unpin(uint32_t number);
  // The run has ended: everything that it borrowed goes back.
  void release() {
    if (pin_count_ > 0 || !leases_.empty() || !device_leases_.empty() || !holders_.empty() || !lasting_.empty()) release_all(0);
  }
  // The same runs once more at once: what it leased is there for its leases.
  void release_for_another() {
    if (pin_count_ > 0 || !leases_.empty() || !device_leases_.empty() || !holders_.empty()) release_all(leased_);
  }

 private:
  void release_all(size_t kept);
  char* take_kept(int64_t bytes);
  void give_up_kept();

  struct Pin {
    Variable* variable = nullptr;
    void* version = nullptr;
  };
  MemoryPool& memory_;
  const uint32_t pin_count_;
  std::unique_ptr<void*[]> table_;
  std::unique_ptr<Shape[]> shapes_;
  std::unique_ptr<Pin[]> pins_;
  SpinLock lock_;  // guards what follows: segments may lease at the same time
  struct DeviceLease {
    DeviceMemory* memory;
    char* block;
  };
  std::vector<char*> leases_;  // so many are used now, behind them those that were before
  size_t leased_ = 0;
  std::vector<DeviceLease> device_leases_;
  std::vector<Ref<RefCounted>> holders_;
  struct Lasting {
    uint32_t slot = UINT32_MAX;
    ValueRoom::Piece piece;
  };
  std::vector<Lasting> lasting_;  // bound before the run, and only read by it
};

}  // namespace dtg
