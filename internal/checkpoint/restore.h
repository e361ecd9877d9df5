// Restoring and verifying sets. A restore is staged: nothing is handed out before all that was asked for has been read and held
// against the manifest. Any number of tasks restores what any other number saved: each says which tensors are its own, and reads
// the shards that hold them. Reshard writes a set again, in another number of shards.
// Pure functions over a Disk; any thread except the network loop.
//
//   DTG_ASSIGN(RestoredSet set, restore_newest(directory, OnDamage::fail, {.budget = budget}));
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/directory.h"

namespace dtg {

struct RestoreOptions {
  // Reserved for the tensors while they are read, and for manifests and headers; null for none. Who keeps the tensors keeps the
  // books from then on.
  MemoryBudget* budget = nullptr;
  // Which tensors to read; empty: all. Shards without any are not touched.
  Wanted wanted;
  // Looks at the manifest before anything else is read; what it says ends the restore.
  std::function<Status(const Manifest&)> check;
  // Of restore_newest: is told of each damaged set that it passes over.
  std::function<void(const SetId&, const Status&)> passed_over;
};

struct RestoredSet {
  Manifest manifest;
  std::vector<NamedTensor> tensors;  // in order of name

  const Tensor* find(std::string_view name) const;  // null if there is none
};

// One set. DATA_LOSS names the file and, where that can be told, the tensor. The whole set is opened before it is read, so that it
// may be pruned meanwhile.
Result<RestoredSet> restore_set(Disk& disk, const CheckpointDirectory& directory, const SetId& id, const RestoreOptions& options = {});

// What to do when the newest set is damaged: say so, or take the newest that is not. Other errors (a lack of memory, of rights) would
// not go away with an older set and are always returned.
enum class OnDamage { fail, fall_back };

// The newest set; NOT_FOUND when there is none.
Result<RestoredSet> restore_newest(Disk& disk, CheckpointDirectory& directory, OnDamage on_damage, const RestoreOptions& options = {});

struct SetReport {
  struct Problem {
    std::string file;
    Status status;
  };
  Manifest manifest;                   // empty where it could not be read
  std::vector<Problem> problems;       // none: the set is what was saved, to the last byte
  std::vector<std::string> strangers;  // files that do not belong to it; nobody reads them
  int64_t bytes = 0;                   // read
};

// Reads every byte of a set and says all that is wrong with it. An error only where that could not be done.
Result<SetReport> verify_set(Disk& disk, const CheckpointDirectory& directory, const SetId& id, MemoryBudget* budget = nullptr);

// The shard for each tensor of a manifest, in its order.
using PlaceShard = std::function<int(const ManifestTensor&)>;
// By bytes: the largest first, each to the shard that has least so far; slots stay with their variable. Equal for equal manifests.
std::vector<int> balanced_placement(const Manifest& manifest, int shards);

struct ReshardOptions {
  int shards = 1;
  PlaceShard place;  // empty: balanced_placement
  MemoryBudget* budget = nullptr;
};

// Writes a set again in `into`, under the same step, with the same tensors, rows and metadata; the source stays. Holds one new shard
// in memory at a time.
Result<SetId> reshard_set(Disk& disk, const CheckpointDirectory& from, const SetId& id, CheckpointDirectory& into,
                          const ReshardOptions& options);

}  // namespace dtg
