// Reading safetensors: no file may crash, hang or make memory grow beyond what it could hold.
#include "checkpoint/safetensors.h"

#include "fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dtg::MemoryBudget budget(int64_t{64} << 20);
  dtg::MemoryFile file({reinterpret_cast<const char*>(data), size});
  auto read = dtg::read_tensors(file, "fuzz", {.budget = &budget});
  if (!read.ok()) return 0;
  // What was accepted can be used.
  uint64_t sum = 0;
  for (const dtg::NamedTensor& item : read.value().tensors) {
    for (int64_t i = 0; i < item.tensor.bytes(); ++i) sum += item.tensor.as<uint8_t>()[i];
    if (read.value().find(item.name) == nullptr) __builtin_trap();
  }
  return sum == UINT64_MAX ? 1 : 0;
}
