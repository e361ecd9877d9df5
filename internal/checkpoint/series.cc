// CheckpointSeries: the names of sets and parts, which sets are complete, and pruning old ones. The files themselves
// are written by safetensors.cc. See series.h for threads.
#include "checkpoint/series.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace dtg {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kPartial = ".partial";
constexpr const char* kStepKey = "dtg.step";
constexpr const char* kSaveKey = "dtg.save_id";

// Takes a number and what must follow it off the front of `text`.
bool take_number(std::string_view& text, std::string_view then, int64_t& value) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || value < 0) return false;
  text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
  if (!text.starts_with(then)) return false;
  text.remove_prefix(then.size());
  return true;
}

struct Name {
  int64_t step = 0;
  int64_t part = 0;  // from 1, as in the name
  int64_t parts = 0;
  bool partial = false;
};

std::string file_name(int64_t step, int64_t part, int64_t parts) {
  return format("step-%012lld-%05lld-of-%05lld.safetensors", static_cast<long long>(step), static_cast<long long>(part),
                static_cast<long long>(parts));
}

std::optional<Name> parse_name(const std::string& whole) {
  std::string_view text = whole;
  Name name;
  if (!text.starts_with(kPrefix)) return {};
  text.remove_prefix(kPrefix.size());
  if (!take_number(text, "-", name.step) || !take_number(text, "-of-", name.part)) return {};
  if (!take_number(text, kSuffix, name.parts)) return {};
  name.partial = text == kPartial;
  if (!text.empty() && !name.partial) return {};
  if (name.part < 1 || name.part > name.parts || name.parts > CheckpointSeries::kPartsMax) return {};
  // Other spellings of the numbers would be found here and missed when opened.
  if (!whole.starts_with(file_name(name.step, name.part, name.parts))) return {};
  return name;
}

const std::string* metadata_of(const TensorFile& file, std::string_view key) {
  for (const auto& [name, value] : file.metadata) {
    if (name == key) return &value;
  }
  return nullptr;
}

}  // namespace

// What the directory holds of one step under one number of parts.
struct CheckpointSeries::Found {
  int64_t step = 0;
  int64_t parts = 0;
  std::vector<int64_t> present;    // whole parts, rising, from 1
  std::vector<std::string> names;  // whole and torn ones
  bool complete() const { return static_cast<int64_t>(present.size()) == parts; }
};

std::string CheckpointSeries::path_of(const CheckpointPart& part) const {
  return directory_ + "/" + file_name(part.step, part.part + 1, part.parts);
}

Status CheckpointSeries::save(const CheckpointPart& part, std::span<const NamedTensor> tensors, const TextPairs& metadata) {
  if (part.step < 0 || part.parts < 1 || part.parts > kPartsMax || part.part < 0 || part.part >= part.parts) {
    return invalid_argument("save a checkpoint in \"%s\": step %lld, part %d of %d; steps start at 0, parts too", directory_.c_str(),
                            static_cast<long long>(part.step), part.part, part.parts);
  }
  DTG_TRY(disk_.make_directories(directory_));
  TextPairs all = metadata;
  all.emplace_back(kStepKey, std::to_string(part.step));
  all.emplace_back(kSaveKey, format("%016llx", static_cast<unsigned long long>(part.save_id)));
  return write_tensors(disk_, path_of(part), tensors, all);
}

Result<std::vector<CheckpointSeries::Found>> CheckpointSeries::find() {
  std::map<std::pair<int64_t, int64_t>, Found> found;
  DTG_ASSIGN(const bool exists, disk_.exists(directory_));
  if (!exists) return std::vector<Found>();
  DTG_ASSIGN(std::vector<std::string> names, disk_.list(directory_));
  std::sort(names.begin(), names.end());
  for (const std::string& text : names) {
    const std::optional<Name> name = parse_name(text);
    if (!name) continue;
    Found& set = found[{name->step, name->parts}];
    set.step = name->step;
    set.parts = name->parts;
    set.names.push_back(text);
    const bool fresh = set.present.empty() || set.present.back() != name->part;
    if (!name->partial && fresh) set.present.push_back(name->part);
  }
  std::vector<Found> sets;
  for (auto& [key, set] : found) sets.push_back(std::move(set));
  return sets;
}

Result<std::vector<int64_t>> CheckpointSeries::steps() {
  DTG_ASSIGN(const std::vector<Found> sets, find());
  std::vector<int64_t> steps;
  for (const Found& set : sets) {
    if (set.complete() && (steps.empty() || steps.back() != set.step)) steps.push_back(set.step);
  }
  return steps;
}

Result<Checkpoint> CheckpointSeries::restore(int64_t step, const ReadTensorsOptions& options) {
  DTG_ASSIGN(const std::vector<Found> sets, find());
  const Found* chosen = nullptr;
  std::string torn;
  for (const Found& set : sets) {
    if (set.step != step) continue;
    if (set.complete()) chosen = &set;
    else torn = format("; %zu of %lld parts are there", set.present.size(), static_cast<long long>(set.parts));
  }
  if (!chosen) {
    return not_found("restore step %lld from \"%s\": no whole checkpoint of that step%s", static_cast<long long>(step), directory_.c_str(),
                     torn.c_str());
  }
  Checkpoint checkpoint;
  checkpoint.step = step;
  std::string save_id;
  for (int part = 0; part < chosen->parts; ++part) {
    const std::string path = path_of({step, part, static_cast<int>(chosen->parts), 0});
    DTG_ASSIGN(TensorFile file, read_tensors(disk_, path, options));
    const std::string* const id = metadata_of(file, kSaveKey);
    const std::string* const at = metadata_of(file, kStepKey);
    if (!id || !at || *at != std::to_string(step) || (part > 0 && *id != save_id)) {
      return data_loss("restore step %lld from \"%s\": part %d of %lld belongs to another save; the set mixes two "
                       "attempts",
                       static_cast<long long>(step), directory_.c_str(), part + 1, static_cast<long long>(chosen->parts));
    }
    save_id = *id;
    std::move(file.tensors.begin(), file.tensors.end(), std::back_inserter(checkpoint.content.tensors));
    if (part == 0) checkpoint.content.metadata = std::move(file.metadata);
  }
  auto& tensors = checkpoint.content.tensors;
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name == b.name; });
  if (twice != tensors.end()) {
    return data_loss("restore step %lld from \"%s\": two parts hold \"%.200s\"", static_cast<long long>(step), directory_.c_str(),
                     twice->name.c_str());
  }
  return checkpoint;
}

Result<Checkpoint> CheckpointSeries::restore_latest(bool fall_back, const ReadTensorsOptions& options) {
  DTG_ASSIGN(const std::vector<int64_t> whole, steps());
  if (whole.empty()) {
    return not_found("restore the latest checkpoint from \"%s\": there is no whole one", directory_.c_str());
  }
  Status first;
  for (size_t i = whole.size(); i-- > 0;) {
    auto checkpoint = restore(whole[i], options);
    if (checkpoint.ok()) return checkpoint;
    if (first.ok()) first = checkpoint.status();
    // Only damage is a reason to go back in time; a lack of memory or rights would not go away with it.
    if (!fall_back || checkpoint.status().code() != Code::data_loss) return checkpoint.status();
  }
  return first;
}

Status CheckpointSeries::prune(int keep) {
  if (keep < 1) return invalid_argument("prune \"%s\": keep %d checkpoints; at least 1 stays", directory_.c_str(), keep);
  DTG_ASSIGN(const std::vector<int64_t> whole, steps());
  if (whole.size() < static_cast<size_t>(keep)) return {};
  const int64_t oldest_kept = whole[whole.size() - static_cast<size_t>(keep)];
  DTG_ASSIGN(const std::vector<Found> sets, find());
  for (const Found& set : sets) {
    if (set.step >= oldest_kept) continue;
    for (const std::string& name : set.names) {
      const Status removed = disk_.remove(directory_ + "/" + name);
      // Another task may have pruned at the same time.
      if (!removed.ok() && removed.code() != Code::not_found) return removed.with_context("prune checkpoints");
    }
  }
  return {};
}

}  // namespace dtg
