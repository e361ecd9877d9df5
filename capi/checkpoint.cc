// dtg/checkpoint.h, the half about sets that are there already: told as JSON, verified, resharded. Saving and restoring are in
// training_checkpoint.cc. Any thread.
#include "dtg/checkpoint.h"
#include "base/json.h"
#include "capi/guard.h"
#include "capi/objects.h"
#include "checkpoint/restore.h"

namespace dtg::capi {
namespace {

// Where a host's path leads: to a directory of sets, or to one of them.
struct Target {
  Ref<Runtime> runtime;
  CheckpointDirectory directory;
  bool one = false;
  SetId id;

  Disk& disk() const { return *runtime->seams().disk; }
  MemoryBudget* budget() const { return runtime->seams().budget; }
};

Result<Target> find_target(dtg_runtime* runtime, const char* path, size_t length) {
  DTG_TRY(require(path, "path"));
  std::string where(text(path, length));
  while (where.size() > 1 && where.back() == '/') where.pop_back();
  if (where.empty()) return invalid_argument("path is empty; give a directory of checkpoints");
  DTG_ASSIGN(Ref<Runtime> held, runtime_of(runtime));
  Disk& disk = *held->seams().disk;
  const Random& random = *held->seams().random;
  DTG_ASSIGN(const bool there, disk.exists(where));
  if (!there) return not_found("look for checkpoints in \"%s\": there is no such directory", where.c_str());
  SetId id;
  const size_t slash = where.rfind('/');
  if (SetId::parse(slash == std::string::npos ? where : where.substr(slash + 1), id)) {
    return Target{std::move(held), {disk, random, parent_directory(where)}, true, id};
  }
  return Target{std::move(held), {disk, random, where}, false, id};
}

// The set that was named, or the newest valid one.
Status choose(Target& target) {
  if (target.one) return {};
  DTG_ASSIGN(const std::vector<FoundSet> sets, target.directory.list());
  for (const FoundSet& set : sets) {
    target.id = set.id;
    if (set.status.ok()) return {};
  }
  if (!sets.empty()) return sets.front().status;
  return not_found("look for checkpoints in \"%s\": there is none", target.directory.path().c_str());
}

Json::Object head(const Target& target, const SetId& id) {
  return {{"path", target.directory.path_of(id)}, {"name", id.name()}, {"step", id.step}};
}

Json::Array shards_json(const Manifest& manifest) {
  Json::Array list;
  for (const ManifestShard& shard : manifest.shards) {
    list.emplace_back(Json::Object{{"file", shard.file}, {"bytes", shard.bytes}, {"sha256", shard.hash.hex()}});
  }
  return list;
}

Json::Array tensors_json(const Manifest& manifest) {
  Json::Array list;
  for (const ManifestTensor& tensor : manifest.tensors) {
    Json::Array shape(tensor.shape.dims().begin(), tensor.shape.dims().end());
    Json::Object row = {{"name", tensor.name},
                        {"dtype", dtype_name(tensor.dtype)},
                        {"shape", std::move(shape)},
                        {"shard", int64_t{tensor.shard}},
                        {"role", role_name(tensor.role)}};
    if (tensor.role == TensorRole::slot) {
      row.emplace_back("of", tensor.of);
      row.emplace_back("slot", tensor.slot);
    }
    list.emplace_back(std::move(row));
  }
  return list;
}

std::string describe(const Target& target, const Manifest& manifest) {
  Json::Object told = head(target, target.id);
  told.emplace_back("bytes", manifest.data_bytes());
  told.emplace_back("shards", shards_json(manifest));
  told.emplace_back("tensors", tensors_json(manifest));
  Json::Array rows;
  for (const WriterRow& row : manifest.rows) {
    rows.emplace_back(Json::Object{
        {"writer", row.writer}, {"epoch", row.epoch}, {"sequence", row.sequence}, {"segment", row.segment}, {"reply", row.reply}});
  }
  told.emplace_back("rows", std::move(rows));
  Json::Object metadata;
  for (const auto& [key, value] : manifest.metadata) metadata.emplace_back(key, value);
  told.emplace_back("metadata", std::move(metadata));
  return Json(std::move(told)).text() + "\n";
}

Json report_json(const Target& target, const SetId& id, const SetReport& report) {
  Json::Object told = head(target, id);
  told.emplace_back("valid", report.problems.empty());
  told.emplace_back("bytes", report.bytes);
  Json::Array problems;
  for (const SetReport::Problem& problem : report.problems) {
    problems.emplace_back(Json::Object{{"file", problem.file}, {"problem", problem.status.message()}});
  }
  told.emplace_back("problems", std::move(problems));
  told.emplace_back("strangers", Json::Array(report.strangers.begin(), report.strangers.end()));
  return told;
}

Status give_text(std::string text, dtg_string** out) { return give(HandleType::string, make_ref<StringObject>(std::move(text)), out); }

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_checkpoint_list(dtg_runtime* runtime, const char* path, size_t path_len, dtg_string** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(Target target, find_target(runtime, path, path_len));
    DTG_ASSIGN(const std::vector<FoundSet> sets, target.directory.list());
    Json::Array list;
    for (const FoundSet& set : sets) {
      if (target.one && set.id != target.id) continue;
      list.emplace_back(Json::Object{{"name", set.id.name()},
                                     {"step", set.id.step},
                                     {"valid", set.status.ok()},
                                     {"problem", set.status.message()},
                                     {"bytes", set.bytes},
                                     {"shards", static_cast<int64_t>(set.shards)},
                                     {"tensors", static_cast<int64_t>(set.tensors)}});
    }
    return give_text(Json(Json::Object{{"directory", target.directory.path()}, {"sets", std::move(list)}}).text() + "\n", out);
  });
}

dtg_error* dtg_checkpoint_describe(dtg_runtime* runtime, const char* path, size_t path_len, dtg_string** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(Target target, find_target(runtime, path, path_len));
    DTG_TRY(choose(target));
    DTG_ASSIGN(const Manifest manifest, read_manifest(target.disk(), target.directory.path_of(target.id), target.budget()));
    return give_text(describe(target, manifest), out);
  });
}

dtg_error* dtg_checkpoint_verify(dtg_runtime* runtime, const char* path, size_t path_len, dtg_string** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(Target target, find_target(runtime, path, path_len));
    std::vector<SetId> ids = {target.id};
    if (!target.one) {
      ids.clear();
      DTG_ASSIGN(const std::vector<FoundSet> sets, target.directory.list());
      for (const FoundSet& set : sets) ids.push_back(set.id);
    }
    if (ids.empty()) return not_found("look for checkpoints in \"%s\": there is none", target.directory.path().c_str());
    Json::Array list;
    for (const SetId& id : ids) {
      DTG_ASSIGN(const SetReport report, verify_set(target.disk(), target.directory, id, target.budget()));
      list.push_back(report_json(target, id, report));
    }
    return give_text(Json(Json::Object{{"sets", std::move(list)}}).text() + "\n", out);
  });
}

dtg_error* dtg_checkpoint_reshard(dtg_runtime* runtime, const char* path, size_t path_len, const char* into, size_t into_len,
                                  int32_t shards, dtg_string** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_TRY(require(into, "into"));
    DTG_ASSIGN(Target target, find_target(runtime, path, path_len));
    DTG_TRY(choose(target));
    if (text(into, into_len).empty()) return invalid_argument("into is empty; give a directory for the new set");
    CheckpointDirectory there(target.disk(), *target.runtime->seams().random, std::string(text(into, into_len)));
    const ReshardOptions options{.shards = shards, .place = {}, .budget = target.budget()};
    DTG_ASSIGN(const SetId made, reshard_set(target.disk(), target.directory, target.id, there, options));
    return give_text(there.path_of(made), out);
  });
}

}  // extern "C"
