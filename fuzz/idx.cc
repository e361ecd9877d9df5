// Reading IDX files, plain and gzip.
#include "data/idx.h"

#include "data/gzip.h"
#include "fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = std::make_unique<dtg::MemoryFile>(std::string_view(reinterpret_cast<const char*>(data), size));
  auto file = dtg::plain_reader(std::move(bytes), "fuzz");
  if (!file.ok()) return 0;
  auto tensor = dtg::read_idx(*file.value(), "fuzz", int64_t{16} << 20);
  if (tensor.ok() && tensor.value().bytes() > int64_t{16} << 20) __builtin_trap();
  return 0;
}
