// Leasing, holding, pinning, and giving everything back.
#include "exec/slots.h"

#include <algorithm>
#include <mutex>

#include "base/size.h"
#include "device/accelerator.h"
#include "exec/memory_pool.h"
#include "exec/variable.h"

namespace dtg {
namespace {
constexpr size_t kKeptTried = 8;
constexpr int64_t kSmallLease = 4096;
}  // namespace

Slots::Slots(uint32_t count, uint32_t pins, bool open, MemoryPool& memory)
    : memory_(memory), pin_count_(pins), table_(new void*[count + 1]()), pins_(new Pin[pins + 1]) {
  if (open) shapes_.reset(new Shape[count + 1]);
}

Result<char*> Slots::lease_block(int64_t bytes, const char* what, DeviceMemory* device) {
  if (!device) {
    if (char* const kept = take_kept(bytes)) return kept;
  }
  Result<char*> taken = device ? device->take(bytes, what) : memory_.take(bytes, what);
  if (!taken.ok() && !device) {
    give_up_kept();
    taken = memory_.take(bytes, what);
  }
  DTG_ASSIGN(char* const block, std::move(taken));
  try {
    const std::lock_guard lock(lock_);
    if (device) {
      device_leases_.push_back({device, block});
    } else {
      leases_.push_back(block);
      std::swap(leases_.back(), leases_[leased_++]);
    }
  } catch (const std::bad_alloc&) {
    if (device) device->give_back(block);
    else memory_.give_back(block);
    throw;
  }
  return block;
}

// Rounds lease alike, so mostly the next one is it; a large one is not for a small value.
char* Slots::take_kept(int64_t bytes) {
  const std::lock_guard lock(lock_);
  const size_t end = std::min(leases_.size(), leased_ + kKeptTried);
  for (size_t i = leased_; i < end; ++i) {
    const int64_t have = MemoryPool::size_of(leases_[i]);
    if (have < bytes || have / 2 > std::max(bytes, kSmallLease)) continue;
    std::swap(leases_[i], leases_[leased_]);
    return leases_[leased_++];
  }
  return nullptr;
}

void Slots::give_up_kept() {
  const std::lock_guard lock(lock_);
  while (leases_.size() > leased_) {
    memory_.give_back(leases_.back());
    leases_.pop_back();
  }
}

Result<void*> Slots::lease(uint32_t slot, DType dtype, const Shape& shape, DeviceMemory* device) {
  const Bytes bytes = Bytes::of(shape.count(), cell_bytes(dtype));
  if (bytes.is_overflow()) {
    return resource_exhausted("a value %s%s is larger than any memory", dtype_name(dtype), shape.text().c_str());
  }
  DTG_ASSIGN(char* const block, lease_block(bytes.value(), "a value whose shape depends on data", device));
  table_[slot] = block;
  set_shape(slot, shape);
  return static_cast<void*>(block);
}

void Slots::keep(Ref<RefCounted> holder) {
  const std::lock_guard lock(lock_);
  holders_.push_back(std::move(holder));
}

void Slots::hold(uint32_t slot, void* data, const Shape& shape, Ref<RefCounted> holder) {
  table_[slot] = data;
  set_shape(slot, shape);
  if (holder) keep(std::move(holder));
}

void Slots::unpin(uint32_t number) {
  const Pin pin = std::exchange(pins_[number], {});
  if (pin.version) pin.variable->unpin(static_cast<Variable::Version*>(pin.version));
}

// The last leases first: whoever leases next takes the first.
void Slots::release_all(size_t kept) {
  for (uint32_t i = 0; i < pin_count_; ++i) unpin(i);
  for (; leases_.size() > kept; leases_.pop_back()) memory_.give_back(leases_.back());
  leased_ = 0;
  for (const DeviceLease& lease : device_leases_) lease.memory->give_back(lease.block);
  device_leases_.clear();
  holders_.clear();
  if (kept == 0) lasting_.clear();
}

}  // namespace dtg
