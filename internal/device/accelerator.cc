// Buffers in the memory of a device.
#include "device/accelerator.h"

#include "base/or_undo.h"

namespace dtg {

Result<Ref<Buffer>> DeviceMemory::take_buffer(int64_t bytes, const char* what) {
  DTG_ASSIGN(char* const block, take(bytes, what));
  const auto end = [](void* data, size_t, void* user) {
    auto* const memory = static_cast<DeviceMemory*>(user);
    memory->give_back(static_cast<char*>(data));
    memory->release();
  };
  retain();
  return or_undo([&] { return Buffer::borrow(block, bytes, end, this); }, [&] { end(block, 0, this); });
}

}  // namespace dtg
