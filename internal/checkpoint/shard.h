// One shard of a set: writing it, with the receipt that says what was written, and reading it back against the manifest.
// A shard is a safetensors file, and readable as one without its set. Pure functions over a Disk; any thread except the network
// loop, and several shards of one set at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "checkpoint/manifest.h"

namespace dtg {

// A tensor to save; nobody may write to it until write_shard returned.
struct ShardTensor {
  std::string name;
  Tensor tensor;
  TensorRole role = TensorRole::variable;
  std::string of;    // of a slot: its variable
  std::string slot;  // of a slot: what the optimizer calls it
};

struct ShardPlace {
  int shard = 0;  // 0 to shards - 1
  int shards = 1;
};

// Writes a file of a name of its own into `directory`, in pieces, and syncs it. First asks whether it fits:
// RESOURCE_EXHAUSTED says how much is needed and how much is free. A file that failed is removed.
// `random` makes the name unlike that of an earlier attempt at the same shard, whose writer may still be at it.
Result<ShardReceipt> write_shard(Disk& disk, const Random& random, const std::string& directory, const SetId& id, const ShardPlace& place,
                                 std::span<const ShardTensor> tensors);

// Says of which tensors the contents are wanted; empty: of all.
using Wanted = std::function<bool(const ManifestTensor&)>;

// Reads shard number `index` to its end and holds every byte to the manifest; appends the wanted tensors to `out`, which is worth
// nothing after an error. DATA_LOSS names the file and, where it can be told, the tensor. `file` stands at its start; `path` is for
// messages; memory for the tensors is reserved by the caller, that for the header here.
Status read_shard(FileReader& file, const std::string& path, const Manifest& manifest, size_t index, const Wanted& wanted,
                  MemoryBudget* budget, std::vector<NamedTensor>& out);

}  // namespace dtg
