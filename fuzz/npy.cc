// NumPy's files: the input as one array, and as an archive of arrays.
#include "data/npy.h"

#include "fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string where = "fuzz";
  constexpr int64_t kMax = int64_t{1} << 20;
  dtg::MemoryFile file(bytes);
  auto array = dtg::read_npy(file, where, kMax);
  if (array.ok() && array.value().bytes() > static_cast<int64_t>(size)) __builtin_trap();
  auto all = dtg::parse_npz(bytes, where, {}, kMax);
  if (all.ok() && all.value().empty()) __builtin_trap();
  return 0;
}
