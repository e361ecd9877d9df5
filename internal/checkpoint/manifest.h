// Manifest: what one set of shards holds: files with sizes and hashes, tensors with their roles, who wrote what. A set is what its
// manifest says, and the manifest carries a hash of itself, so that any changed byte of a set is found. Receipt: what a task says
// about the one shard it wrote; a manifest is made of receipts. Values; text in, text out; any thread.
//
// manifest.json, 76 bytes and JSON; the hash is SHA-256 over the whole file with 64 zeros in the hash's place:
//
//   {"sha256":"<64 hex digits>",
//   "format":"dtg checkpoint","version":1,"step":1200,"save":"0000000007a1b2c3",
//   "shards":[
//   {"file":"shard-00001-of-00002-1a2b3c4d.safetensors","bytes":4096,"sha256":"..."}, ...],
//   "tensors":[
//   {"name":"w","dtype":"F32","shape":[2,3],"shard":0,"crc32c":"0a1b2c3d","role":"variable"},
//   {"name":"w/momentum","dtype":"F32","shape":[2,3],"shard":0,"crc32c":"...","role":"slot","of":"w","slot":"momentum"}, ...],
//   "rows":[
//   {"writer":"...","epoch":1,"sequence":17,"segment":0,"reply":""}, ...],
//   "metadata":{"key":"value"}}
//
// Members that a reader does not know are passed over; a version that it does not know is not.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "checkpoint/safetensors.h"

namespace dtg {

// Which set: of which step, and by which attempt to save it. A later attempt has the greater number, also of the same step.
struct SetId {
  int64_t step = 0;
  uint64_t save = 0;
  auto operator<=>(const SetId&) const = default;

  // "step-000000001200-0000000007a1b2c3"
  std::string name() const;
  // False unless `text` is what name() gives.
  static bool parse(std::string_view text, SetId& id);
};

enum class TensorRole : uint8_t { variable, slot, step, random, data, reply, other };
const char* role_name(TensorRole role);

struct ManifestTensor {
  std::string name;
  DType dtype = DType::invalid;
  Shape shape;
  int32_t shard = 0;
  uint32_t crc32c = 0;  // of the tensor's bytes; says which one is damaged where the shard's hash only says that one is
  TensorRole role = TensorRole::variable;
  std::string of;    // of a slot: its variable
  std::string slot;  // of a slot: what the optimizer calls it

  int64_t bytes() const { return shape.count() * dtype_size(dtype); }
};

struct ManifestShard {
  std::string file;  // a name inside of the set
  int64_t bytes = 0;
  Sha256Digest hash;
};

// What had been applied of one writer when the set was taken, so that values and rows cannot disagree.
struct WriterRow {
  std::string writer;
  int64_t epoch = 0;
  int64_t sequence = 0;
  int64_t segment = 0;
  std::string reply;  // the name of the tensor that holds what the writer was answered; empty for nothing
};

struct Manifest {
  SetId id;
  std::vector<ManifestShard> shards;
  std::vector<ManifestTensor> tensors;  // in order of name
  std::vector<WriterRow> rows;
  TextPairs metadata;

  const ManifestTensor* find(std::string_view name) const;  // null if there is none
  int64_t data_bytes() const;                               // of all tensors
};

inline constexpr size_t kShardsMax = 65536;
inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr int64_t kManifestBytesMax = int64_t{256} << 20;

// What to reserve while a manifest is parsed: a value of two characters becomes a node of forty bytes.
constexpr int64_t manifest_memory(int64_t text_bytes) { return 24 * text_bytes; }

// Refuses with INVALID_ARGUMENT what parse_manifest would refuse.
Result<std::string> manifest_text(const Manifest& manifest);
// DATA_LOSS for anything that manifest_text does not write; UNIMPLEMENTED for a version of later days. `path` is for messages.
Result<Manifest> parse_manifest(std::string_view text, const std::string& path);

struct ShardReceipt {
  ManifestShard shard;
  std::vector<ManifestTensor> tensors;  // their `shard` means nothing yet
};

// Receipts travel from the tasks to whoever publishes.
std::string receipt_text(const ShardReceipt& receipt);
Result<ShardReceipt> parse_receipt(std::string_view text, const std::string& from);

}  // namespace dtg
