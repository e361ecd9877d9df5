// Beginning, publishing, listing and removing sets. What is in a shard is shard.cc's business. See directory.h for threads.
#include "checkpoint/directory.h"

#include <algorithm>
#include <optional>

#include "checkpoint/reservation.h"

namespace dtg {
namespace {

constexpr std::string_view kSaving = ".saving-";
constexpr std::string_view kRemoved = ".removed-";

// An attempt's number counts up from the greatest in the directory; below that stand 24 random bits, so that a writer of an attempt
// that was given up does not take the next one with the same number for its own.
constexpr int kRandomBits = 24;

std::optional<SetId> id_of(std::string_view name, std::string_view prefix) {
  SetId id;
  if (!name.starts_with(prefix) || !SetId::parse(name.substr(prefix.size()), id)) return {};
  return id;
}

Status write_new(Disk& disk, const std::string& path, std::string_view text) {
  DTG_ASSIGN(auto file, disk.open_new(path));
  DTG_TRY(file->append(text));
  DTG_TRY(file->sync());
  return file->close();
}

// The directory itself must survive too, and, where it is new, all on the way to it. A parent that may not be read cannot be synced,
// and what is wrong further up is nobody's fault here.
Status make_durable_directory(Disk& disk, const std::string& path) {
  DTG_ASSIGN(const bool there, disk.exists(path));
  if (!there) DTG_TRY(disk.make_directories(path));
  std::string parent = parent_directory(path);
  const Status synced = disk.sync_directory(parent);
  if (!synced.ok() && synced.code() != Code::permission_denied) return synced;
  while (!there && parent != "/" && parent != ".") {
    parent = parent_directory(parent);
    static_cast<void>(disk.sync_directory(parent).ok());
  }
  return {};
}

Result<Manifest> assemble(const SetId& id, std::span<const ShardReceipt> receipts, const SetExtras& extras) {
  Manifest manifest;
  manifest.id = id;
  manifest.rows = extras.rows;
  manifest.metadata = extras.metadata;
  for (const ShardReceipt& receipt : receipts) {
    for (ManifestTensor tensor : receipt.tensors) {
      tensor.shard = static_cast<int32_t>(manifest.shards.size());
      manifest.tensors.push_back(std::move(tensor));
    }
    manifest.shards.push_back(receipt.shard);
  }
  std::ranges::sort(manifest.tensors, {}, &ManifestTensor::name);
  const auto twice = std::ranges::adjacent_find(manifest.tensors, {}, &ManifestTensor::name);
  if (twice != manifest.tensors.end()) {
    return invalid_argument("publish %s: \"%.200s\" is in two shards", id.name().c_str(), twice->name.c_str());
  }
  return manifest;
}

// That a shard is there as said; its bytes were hashed as they were written.
Status check_shard_file(Disk& disk, const std::string& path, const ManifestShard& shard) {
  const auto found = disk.look_up(path);
  if (found.status().code() == Code::not_found) return data_loss("look for \"%s\": it is missing", path.c_str());
  DTG_TRY(found.status());
  if (found.value().kind != FileStat::Kind::file) return data_loss("look for \"%s\": it is no regular file", path.c_str());
  if (found.value().bytes == shard.bytes) return {};
  return data_loss("look for \"%s\": it has %lld bytes, %lld were saved", path.c_str(), static_cast<long long>(found.value().bytes),
                   static_cast<long long>(shard.bytes));
}

// The manifest's text; a problem that is the set's own becomes DATA_LOSS.
Result<std::string> read_manifest_text(Disk& disk, const std::string& path, int64_t bytes) {
  DTG_ASSIGN(auto file, disk.open_regular(path));
  std::string text(static_cast<size_t>(bytes) + 1, '\0');
  size_t done = 0;
  while (done < text.size()) {
    DTG_ASSIGN(const size_t got, file->read(text.data() + done, text.size() - done));
    if (got == 0) break;
    done += got;
  }
  text.resize(done);
  return text;
}

Status check_set(Disk& disk, const std::string& path, FoundSet& found) {
  DTG_ASSIGN(const FileStat stat, disk.look_up(path));
  if (stat.kind != FileStat::Kind::directory) return data_loss("look at \"%s\": it is no directory", path.c_str());
  DTG_ASSIGN(const Manifest manifest, read_manifest(disk, path));
  found.shards = manifest.shards.size();
  found.tensors = manifest.tensors.size();
  if (manifest.id != found.id) {
    return data_loss("look at \"%s\": its manifest is that of %s", path.c_str(), manifest.id.name().c_str());
  }
  for (const ManifestShard& shard : manifest.shards) {
    DTG_TRY(check_shard_file(disk, path + "/" + shard.file, shard));
    found.bytes += shard.bytes;
  }
  return {};
}

}  // namespace

Status or_vanished(Disk& disk, const std::string& path, Status status) {
  if (status.ok()) return status;
  const Status there = disk.look_up(path).status();
  return there.code() == Code::not_found ? there : status;
}

Result<Manifest> read_manifest(Disk& disk, const std::string& path, MemoryBudget* budget) {
  const std::string file = path + "/" + kManifestFile;
  const auto found = disk.look_up(file);
  if (found.status().code() == Code::not_found) {
    DTG_TRY(disk.look_up(path).status());
    return data_loss("read \"%s\": the set has no manifest", file.c_str());
  }
  DTG_TRY(found.status());
  if (found.value().kind != FileStat::Kind::file) return data_loss("read \"%s\": it is no regular file", file.c_str());
  if (found.value().bytes > kManifestBytesMax) {
    return data_loss("read \"%s\": it has %lld bytes, at most %lld are possible", file.c_str(), static_cast<long long>(found.value().bytes),
                     static_cast<long long>(kManifestBytesMax));
  }
  const int64_t memory = manifest_memory(found.value().bytes);
  if (budget) DTG_TRY(budget->reserve(memory, file.c_str()));
  const Reservation reservation(budget, memory);
  DTG_ASSIGN(const std::string text, read_manifest_text(disk, file, found.value().bytes));
  return parse_manifest(text, file);
}

Result<SetId> CheckpointDirectory::begin(int64_t step) {
  if (step < 0)
    return invalid_argument("save a checkpoint of step %lld in \"%s\": steps start at 0", static_cast<long long>(step), path_.c_str());
  DTG_TRY(make_durable_directory(disk_, path_).with_context("save a checkpoint"));
  DTG_ASSIGN(const std::vector<std::string> names, disk_.list(path_));
  uint64_t latest = 0;
  for (const std::string& name : names) {
    for (const std::string_view prefix : {std::string_view(), kSaving, kRemoved}) {
      const auto id = id_of(name, prefix);
      if (id) latest = std::max(latest, id->save >> kRandomBits);
    }
  }
  if (latest >= (uint64_t{1} << (64 - kRandomBits)) - 1) {
    return out_of_range("save a checkpoint in \"%s\": a set there has the last number there is; save to another directory", path_.c_str());
  }
  const SetId id{step, (latest + 1) << kRandomBits | random_.u64() >> (64 - kRandomBits)};
  DTG_TRY(disk_.make_directory(attempt_path(id)));
  return id;
}

Result<ShardReceipt> CheckpointDirectory::write(const SetId& id, const ShardPlace& place, std::span<const ShardTensor> tensors) {
  return write_shard(disk_, random_, attempt_path(id), id, place, tensors);
}

// Everything up to the rename: what the attempt holds is then exactly the set, and on the disk.
Status CheckpointDirectory::fill(const SetId& id, std::span<const ShardReceipt> receipts, const SetExtras& extras) {
  DTG_ASSIGN(const Manifest manifest, assemble(id, receipts, extras));
  DTG_ASSIGN(const std::string text, manifest_text(manifest));
  const std::string attempt = attempt_path(id);
  for (const ManifestShard& shard : manifest.shards) DTG_TRY(check_shard_file(disk_, attempt + "/" + shard.file, shard));
  // Tasks that tried again left shards that no receipt names.
  DTG_ASSIGN(const std::vector<std::string> names, disk_.list(attempt));
  for (const std::string& name : names) {
    const bool ours = std::ranges::any_of(manifest.shards, [&name](const ManifestShard& shard) { return shard.file == name; });
    if (!ours && name != kManifestFile) DTG_TRY(disk_.remove(attempt + "/" + name));
  }
  DTG_TRY(write_new(disk_, attempt + "/" + kManifestFile, text));
  return disk_.sync_directory(attempt);
}

Status CheckpointDirectory::publish(const SetId& id, std::span<const ShardReceipt> receipts, const SetExtras& extras) {
  Status status = fill(id, receipts, extras);
  if (!status.ok()) {
    give_up(id);
    return status.with_context("publish a checkpoint");
  }
  status = disk_.rename(attempt_path(id), path_of(id));
  if (status.ok()) return {};
  // The name may be there, with nobody knowing whether it stays: it must not count.
  static_cast<void>(retire(path_of(id), id).ok());
  give_up(id);
  return status.with_context("publish a checkpoint");
}

void CheckpointDirectory::give_up(const SetId& id) { static_cast<void>(retire(attempt_path(id), id).ok()); }

// First out of sight, and that for good; then away. So nobody ever finds half a set, and an attempt whose writers are still at work
// fails under their hands instead of losing single files. Where nobody knows whether the new name is on the disk, all of it stays
// for remove_leftovers: the old name may come back.
Status CheckpointDirectory::retire(const std::string& from, const SetId& id) {
  const Status moved = disk_.rename(from, removed_path(id));
  // Somebody else may have been faster.
  if (!moved.ok()) return moved.code() == Code::not_found ? Status() : moved;
  return remove_tree(disk_, removed_path(id));
}

Result<std::vector<FoundSet>> CheckpointDirectory::list() {
  std::vector<FoundSet> sets;
  DTG_ASSIGN(const bool exists, disk_.exists(path_));
  if (!exists) return sets;
  DTG_ASSIGN(const std::vector<std::string> names, disk_.list(path_));
  for (const std::string& name : names) {
    const auto id = id_of(name, "");
    if (!id) continue;
    FoundSet found{.id = *id, .status = {}};
    found.status = or_vanished(disk_, path_ + "/" + name, check_set(disk_, path_ + "/" + name, found));
    if (found.status.code() != Code::not_found) sets.push_back(std::move(found));
  }
  std::ranges::sort(sets, std::greater<>(), &FoundSet::id);
  return sets;
}

Status CheckpointDirectory::prune(int keep) {
  if (keep < 1) return invalid_argument("prune \"%s\": keep %d sets; at least 1 stays", path_.c_str(), keep);
  DTG_ASSIGN(const std::vector<FoundSet> sets, list());
  int valid = 0;
  for (const FoundSet& set : sets) {
    if (valid >= keep) DTG_TRY(retire(path_of(set.id), set.id).with_context("prune checkpoints"));
    if (set.status.ok()) ++valid;
  }
  return {};
}

Result<bool> CheckpointDirectory::is_stale(const std::string& attempt, const Clock& clock, double older_than_s) {
  DTG_ASSIGN(const FileStat directory, disk_.look_up(attempt));
  DTG_ASSIGN(const std::vector<std::string> names, disk_.list(attempt));
  double changed = directory.modified_seconds;
  for (const std::string& name : names) {
    DTG_ASSIGN(const FileStat file, disk_.look_up(attempt + "/" + name));
    changed = std::max(changed, file.modified_seconds);
  }
  return clock.wall_seconds() - changed >= older_than_s;
}

Status CheckpointDirectory::remove_leftovers(const Clock& clock, const Leftovers& leftovers) {
  DTG_ASSIGN(const bool exists, disk_.exists(path_));
  if (!exists) return {};
  DTG_ASSIGN(const std::vector<std::string> names, disk_.list(path_));
  // What lies under the names of removed sets goes only after nothing can bring their old names back.
  if (std::ranges::any_of(names, [](const std::string& name) { return id_of(name, kRemoved).has_value(); })) {
    DTG_TRY(disk_.sync_directory(path_));
  }
  for (const std::string& name : names) {
    if (id_of(name, kRemoved)) DTG_TRY(remove_tree(disk_, path_ + "/" + name));
    const auto id = id_of(name, kSaving);
    if (!id || std::ranges::find(leftovers.live, *id) != leftovers.live.end()) continue;
    const auto stale = is_stale(path_ + "/" + name, clock, leftovers.older_than_s);
    // Published or given up under our eyes.
    if (stale.status().code() == Code::not_found) continue;
    DTG_TRY(stale.status());
    if (stale.value()) DTG_TRY(retire(path_ + "/" + name, *id));
  }
  return {};
}

}  // namespace dtg
