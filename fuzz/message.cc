// Frames from anywhere: a prefix, then a header of the kind that the prefix names, then the same bytes as the header
// of the kind that the first byte names, without a checksum in the way.
#include <cstddef>
#include <cstdint>

#include "wire/flatbuffers_assert.h"
#include "wire/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtg::wire;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto prefix = read_prefix(bytes, {});
  if (prefix.ok() && size >= kPrefixBytes + prefix.value().header_bytes) {
    const std::string_view header = bytes.substr(kPrefixBytes, prefix.value().header_bytes);
    if (check_header(bytes, header).ok()) (void)check_message(prefix.value().kind, header).ok();
  }
  (void)check_message(static_cast<Kind>(1 + data[0] % kKindMax), bytes.substr(1)).ok();
  if (failed_assertions() != 0) __builtin_trap();
  return 0;
}
