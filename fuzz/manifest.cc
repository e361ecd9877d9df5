// Manifests and receipts from anywhere, with a hash that fits: parsing refuses them or gives what can be written and read again.
#include "checkpoint/manifest.h"

namespace {

constexpr size_t kHashAt = 11, kHashDigits = 64;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  const auto receipt = dtg::parse_receipt(text, "fuzz");
  if (receipt.ok() && !dtg::parse_receipt(dtg::receipt_text(receipt.value()), "our own").ok()) __builtin_trap();
  if (text.size() >= kHashAt + kHashDigits) {
    text.replace(kHashAt, kHashDigits, std::string(kHashDigits, '0'));
    text.replace(kHashAt, kHashDigits, dtg::sha256(text).hex());
  }
  const auto manifest = dtg::parse_manifest(text, "fuzz");
  if (!manifest.ok()) return 0;
  const auto written = dtg::manifest_text(manifest.value());
  if (!written.ok()) __builtin_trap();
  const auto again = dtg::parse_manifest(written.value(), "our own");
  if (!again.ok() || dtg::manifest_text(again.value()).value() != written.value()) __builtin_trap();
  // What was accepted can be used.
  int64_t room = 0, used = manifest.value().data_bytes();
  for (const dtg::ManifestShard& shard : manifest.value().shards) {
    if (shard.file.find('/') != std::string::npos || shard.file[0] == '.') __builtin_trap();
    if (__builtin_add_overflow(room, shard.bytes, &room)) return 0;
  }
  if (used < 0 || used > room) __builtin_trap();
  for (const dtg::ManifestTensor& tensor : manifest.value().tensors) {
    if (manifest.value().find(tensor.name) != &tensor) __builtin_trap();
  }
  return 0;
}
