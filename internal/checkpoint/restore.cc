// Opens sets, reads their shards through shard.cc, and puts them together again. See restore.h for threads.
#include "checkpoint/restore.h"

#include <algorithm>
#include <map>

#include "checkpoint/reservation.h"

namespace dtg {
namespace {

// A set of more shards is opened as it is read: descriptors are few.
constexpr size_t kOpenAtOnce = 256;

// Opens a shard. What is missing or no file is the set's fault.
Result<std::unique_ptr<FileReader>> open_shard(Disk& disk, const std::string& path, const ManifestShard& shard) {
  const auto stat = disk.look_up(path);
  auto file = disk.open_regular(path);
  const Code code = file.ok() ? stat.status().code() : file.status().code();
  if (code == Code::not_found || code == Code::failed_precondition) {
    return data_loss("%s", file.ok() ? stat.status().message().c_str() : file.status().message().c_str());
  }
  DTG_TRY(file.status());
  DTG_TRY(stat.status());
  if (stat.value().bytes == shard.bytes) return file;
  return data_loss("read \"%s\": it has %lld bytes, %lld were saved", path.c_str(), static_cast<long long>(stat.value().bytes),
                   static_cast<long long>(shard.bytes));
}

// The numbers of the shards with something wanted, and what they hold of it in bytes.
std::vector<size_t> wanted_shards(const Manifest& manifest, const Wanted& wanted, int64_t& bytes) {
  std::vector<bool> needed(manifest.shards.size(), !wanted);
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (wanted && !wanted(tensor)) continue;
    needed[static_cast<size_t>(tensor.shard)] = true;
    bytes += tensor.bytes();
  }
  std::vector<size_t> shards;
  for (size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) shards.push_back(i);
  }
  return shards;
}

Result<Manifest> manifest_of(Disk& disk, const CheckpointDirectory& directory, const SetId& id, MemoryBudget* budget) {
  const std::string path = directory.path_of(id);
  DTG_ASSIGN(const FileStat stat, disk.look_up(path));
  if (stat.kind != FileStat::Kind::directory) return data_loss("read \"%s\": it is no directory", path.c_str());
  DTG_ASSIGN(Manifest manifest, read_manifest(disk, path, budget));
  if (manifest.id == id) return manifest;
  return data_loss("read \"%s/%s\": it is the manifest of %s", path.c_str(), kManifestFile, manifest.id.name().c_str());
}

// The shards that fit into the descriptors, opened at once; whoever prunes cannot take those away.
Result<std::vector<std::unique_ptr<FileReader>>> open_first(Disk& disk, const std::string& path, const Manifest& manifest,
                                                            const std::vector<size_t>& shards) {
  std::vector<std::unique_ptr<FileReader>> files;
  for (size_t i = 0; i < std::min(shards.size(), kOpenAtOnce); ++i) {
    const ManifestShard& shard = manifest.shards[shards[i]];
    DTG_ASSIGN(files.emplace_back(), open_shard(disk, path + "/" + shard.file, shard));
  }
  return files;
}

}  // namespace

const Tensor* RestoredSet::find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(tensors, name, {}, [](const NamedTensor& item) { return std::string_view(item.name); });
  return at != tensors.end() && at->name == name ? &at->tensor : nullptr;
}

Result<RestoredSet> restore_set(Disk& disk, const CheckpointDirectory& directory, const SetId& id, const RestoreOptions& options) {
  RestoredSet set;
  DTG_ASSIGN(set.manifest, manifest_of(disk, directory, id, options.budget));
  if (options.check) DTG_TRY(options.check(set.manifest));
  const std::string path = directory.path_of(id);
  int64_t bytes = 0;
  const std::vector<size_t> shards = wanted_shards(set.manifest, options.wanted, bytes);
  auto opened = open_first(disk, path, set.manifest, shards);
  DTG_TRY(or_vanished(disk, path, opened.status()));
  std::vector<std::unique_ptr<FileReader>> files = opened.take();
  // The manifest's sizes are those of real files now, so nobody reserves more than there is to read.
  if (options.budget) DTG_TRY(options.budget->reserve(bytes, path.c_str()));
  const Reservation reservation(options.budget, bytes);
  for (size_t i = 0; i < shards.size(); ++i) {
    const ManifestShard& shard = set.manifest.shards[shards[i]];
    const std::string file_path = path + "/" + shard.file;
    if (i >= files.size()) {
      auto late = open_shard(disk, file_path, shard);
      DTG_TRY(or_vanished(disk, path, late.status()));
      files.push_back(late.take());
    }
    DTG_TRY(read_shard(*files[i], file_path, set.manifest, shards[i], options.wanted, options.budget, set.tensors));
    files[i].reset();
  }
  std::ranges::sort(set.tensors, {}, &NamedTensor::name);
  return set;
}

Result<RestoredSet> restore_newest(Disk& disk, CheckpointDirectory& directory, OnDamage on_damage, const RestoreOptions& options) {
  // A set that is pruned before it was opened has a newer one, so we look again; not for ever, should somebody play with us.
  for (int tries = 0; tries < 16; ++tries) {
    DTG_ASSIGN(const std::vector<FoundSet> sets, directory.list());
    if (sets.empty()) return not_found("restore from \"%s\": there is no checkpoint", directory.path().c_str());
    Status first;
    bool vanished = false;
    for (size_t i = 0; i < sets.size() && !vanished; ++i) {
      auto set = sets[i].status.ok() ? restore_set(disk, directory, sets[i].id, options) : Result<RestoredSet>(sets[i].status);
      if (set.ok()) return set;
      vanished = set.status().code() == Code::not_found;
      if (vanished) continue;
      if (first.ok()) first = set.status();
      if (on_damage == OnDamage::fail || set.status().code() != Code::data_loss) return set.status();
      if (options.passed_over) options.passed_over(sets[i].id, set.status());
    }
    if (!vanished) {
      return data_loss(
          "restore from \"%s\": none of its %zu checkpoints is whole; `dtg checkpoint verify` tells what is damaged of each; bring one "
          "back from a copy, or move the directory away to begin anew. The newest: %s",
          directory.path().c_str(), sets.size(), first.message().c_str());
    }
  }
  return unavailable("restore from \"%s\": sets go while they are looked for; try again", directory.path().c_str());
}

Result<SetReport> verify_set(Disk& disk, const CheckpointDirectory& directory, const SetId& id, MemoryBudget* budget) {
  SetReport report;
  const std::string path = directory.path_of(id);
  // Lack of memory or of rights says nothing about the set.
  const auto is_damage = [](const Status& status) { return status.code() == Code::data_loss; };
  auto manifest = manifest_of(disk, directory, id, budget);
  if (is_damage(manifest.status())) {
    report.problems.push_back({kManifestFile, manifest.status()});
    return report;
  }
  DTG_TRY(manifest.status());
  report.manifest = manifest.take();
  std::vector<NamedTensor> none;
  for (size_t i = 0; i < report.manifest.shards.size(); ++i) {
    const ManifestShard& shard = report.manifest.shards[i];
    const std::string file_path = path + "/" + shard.file;
    auto file = open_shard(disk, file_path, shard);
    const Status status = file.ok() ? read_shard(
                                          *file.value(), file_path, report.manifest, i, [](const auto&) { return false; }, budget, none)
                                    : file.status();
    if (is_damage(status)) report.problems.push_back({shard.file, status});
    else DTG_TRY(status);
    report.bytes += shard.bytes;
  }
  DTG_ASSIGN(std::vector<std::string> names, disk.list(path));
  for (std::string& name : names) {
    const bool ours = std::ranges::any_of(report.manifest.shards, [&name](const ManifestShard& shard) { return shard.file == name; });
    if (!ours && name != kManifestFile) report.strangers.push_back(std::move(name));
  }
  return report;
}

std::vector<int> balanced_placement(const Manifest& manifest, int shards) {
  struct Group {
    std::string_view name;
    int64_t bytes = 0;
    std::vector<size_t> members;
  };
  std::map<std::string_view, Group> by_name;
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const ManifestTensor& tensor = manifest.tensors[i];
    const std::string_view name = tensor.role == TensorRole::slot ? tensor.of : tensor.name;
    Group& group = by_name[name];
    group.name = name;
    group.bytes += tensor.bytes();
    group.members.push_back(i);
  }
  std::vector<const Group*> order;
  for (const auto& [name, group] : by_name) order.push_back(&group);
  std::ranges::stable_sort(order, std::greater<>(), &Group::bytes);
  std::vector<int64_t> load(static_cast<size_t>(shards));
  std::vector<int> placed(manifest.tensors.size());
  for (const Group* group : order) {
    const auto least = std::ranges::min_element(load);
    *least += group->bytes;
    for (const size_t i : group->members) placed[i] = static_cast<int>(least - load.begin());
  }
  return placed;
}

namespace {

Result<std::vector<int>> place_all(const Manifest& manifest, const ReshardOptions& options) {
  if (options.shards < 1 || options.shards > static_cast<int>(kShardsMax)) {
    return invalid_argument("reshard %s into %d shards; 1 to %zu are possible", manifest.id.name().c_str(), options.shards, kShardsMax);
  }
  if (!options.place) return balanced_placement(manifest, options.shards);
  std::vector<int> placed;
  for (const ManifestTensor& tensor : manifest.tensors) {
    placed.push_back(options.place(tensor));
    if (placed.back() >= 0 && placed.back() < options.shards) continue;
    return invalid_argument("reshard %s: \"%.200s\" is put into shard %d of %d", manifest.id.name().c_str(), tensor.name.c_str(),
                            placed.back(), options.shards);
  }
  return placed;
}

Result<ShardReceipt> copy_shard(Disk& disk, const CheckpointDirectory& from, const Manifest& manifest, const std::vector<int>& placed,
                                CheckpointDirectory& into, const SetId& id, const ShardPlace& place, MemoryBudget* budget) {
  const auto here = [&](const ManifestTensor& tensor) {
    return placed[static_cast<size_t>(manifest.find(tensor.name) - manifest.tensors.data())] == place.shard;
  };
  DTG_ASSIGN(RestoredSet set, restore_set(disk, from, manifest.id, {.budget = budget, .wanted = here}));
  std::vector<ShardTensor> tensors;
  for (NamedTensor& item : set.tensors) {
    const ManifestTensor& row = *manifest.find(item.name);
    tensors.push_back({item.name, std::move(item.tensor), row.role, row.of, row.slot});
  }
  return into.write(id, place, tensors);
}

}  // namespace

Result<SetId> reshard_set(Disk& disk, const CheckpointDirectory& from, const SetId& id, CheckpointDirectory& into,
                          const ReshardOptions& options) {
  DTG_ASSIGN(const Manifest manifest, manifest_of(disk, from, id, options.budget));
  DTG_ASSIGN(const std::vector<int> placed, place_all(manifest, options));
  DTG_ASSIGN(const SetId made, into.begin(id.step));
  std::vector<ShardReceipt> receipts;
  for (int shard = 0; shard < options.shards; ++shard) {
    auto receipt = copy_shard(disk, from, manifest, placed, into, made, {shard, options.shards}, options.budget);
    if (!receipt.ok()) {
      into.give_up(made);
      return receipt.status();
    }
    receipts.push_back(receipt.take());
  }
  DTG_TRY(into.publish(made, receipts, {manifest.rows, manifest.metadata}));
  return made;
}

}  // namespace dtg
