// CheckpointDirectory: the sets of one training run, each a directory of its own:
//
//   step-000000001200-0000000007a1b2c3/       a published set: manifest.json and its shards
//   .saving-step-000000001300-...             one that is being written, by any number of tasks
//   .removed-step-000000000100-...            one on its way out
//
// A set comes into being by one rename, after all it holds is on the disk; so whoever looks, and whenever the machine stopped, finds
// the old sets or the old ones and the new one, whole. There is no list and no "latest" file that could disagree with the sets: the
// newest is the one with the highest step, and of one step the latest attempt. Where something fails, the attempt is given up and
// the sets stay as they were.
//
// Saving takes several hands: the chief begins and publishes, each task that holds variables writes its shard and sends its receipt.
//
//   DTG_ASSIGN(const SetId id, directory.begin(step));                   // chief
//   DTG_ASSIGN(ShardReceipt receipt, directory.write(id, place, mine));  // every task
//   DTG_TRY(directory.publish(id, receipts, {rows, metadata}));          // chief; gives up by itself when it fails
//
// Holds no state but where it is; several objects, also of several processes, may work on one directory. Any thread except the
// network loop.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "checkpoint/shard.h"

namespace dtg {

// What a set holds beside the tensors.
struct SetExtras {
  std::vector<WriterRow> rows;
  TextPairs metadata;
};

// A set as it is found without reading its shards.
struct FoundSet {
  SetId id;
  // Ok when its manifest holds and all shards are there in their sizes; whether their bytes are right, verify_set tells.
  Status status;
  int64_t bytes = 0;  // of all shards
  size_t shards = 0;
  size_t tensors = 0;
};

struct Leftovers {
  std::vector<SetId> live;     // attempts that are known to be under way stay
  double older_than_s = 3600;  // others go when nothing in them has changed for so long; 0 where nobody else saves here
};

class CheckpointDirectory {
 public:
  // The seams must outlive it.
  CheckpointDirectory(Disk& disk, const Random& random, std::string path) : disk_(disk), random_(random), path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // Starts an attempt; makes the directory if need be.
  Result<SetId> begin(int64_t step);
  // Writes one shard of an attempt; see write_shard. NOT_FOUND when the attempt was given up meanwhile.
  Result<ShardReceipt> write(const SetId& id, const ShardPlace& place, std::span<const ShardTensor> tensors);
  // Makes a set of the attempt: one receipt per shard, in order. When it returns ok, the set is the newest of its step and survives
  // anything but the loss of the disk; otherwise the attempt is gone.
  Status publish(const SetId& id, std::span<const ShardReceipt> receipts, const SetExtras& extras = {});
  // Removes an attempt that will not be published. Not for sets.
  void give_up(const SetId& id);

  // All sets, newest first, the damaged ones with their reasons. Empty when the directory does not exist.
  Result<std::vector<FoundSet>> list();

  // Removes all sets that are older than the `keep` newest valid ones. A set that somebody is reading goes too, but its reader has
  // opened it and reads on.
  Status prune(int keep);
  // Removes what attempts that died left behind.
  Status remove_leftovers(const Clock& clock, const Leftovers& leftovers = {});

  std::string path_of(const SetId& id) const { return path_ + "/" + id.name(); }

 private:
  std::string attempt_path(const SetId& id) const { return path_ + "/.saving-" + id.name(); }
  std::string removed_path(const SetId& id) const { return path_ + "/.removed-" + id.name(); }
  Status fill(const SetId& id, std::span<const ShardReceipt> receipts, const SetExtras& extras);
  Status retire(const std::string& from, const SetId& id);
  Result<bool> is_stale(const std::string& attempt, const Clock& clock, double older_than_s);

  Disk& disk_;
  const Random& random_;
  const std::string path_;
};

// The manifest of a set, verified against its own hash. `path` is the set's directory. NOT_FOUND when there is no such directory.
Result<Manifest> read_manifest(Disk& disk, const std::string& path, MemoryBudget* budget = nullptr);

// What a failed look at the set at `path` means: NOT_FOUND when the set is no longer there, as somebody pruned it, else the failure.
Status or_vanished(Disk& disk, const std::string& path, Status status);

}  // namespace dtg
