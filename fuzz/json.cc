// Parsing JSON, and that our text of what was accepted is accepted again and says the same.
#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtg::JsonLimits limits{.bytes_max = size_t{1} << 22, .values_max = size_t{1} << 16, .depth_max = 32};
  auto json = dtg::parse_json({reinterpret_cast<const char*>(data), size}, "fuzz", limits);
  if (!json.ok()) return 0;
  const std::string text = json.value().text();
  auto again = dtg::parse_json(text, "our own text", limits);
  if (!again.ok() || again.value().text() != text) __builtin_trap();
  return 0;
}
