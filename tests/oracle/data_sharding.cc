// Shards and batches of data sets, element by element; see ps.h.
#include "ps.h"

namespace dtg::oracle {
namespace {

using Data = std::shared_ptr<dtg_dataset>;

Outcome range(int64_t stop, Data* out) {
  dtg_dataset* data = nullptr;
  Outcome failed = outcome(dtg_dataset_range(nullptr, 0, stop, 1, &data));
  if (!failed) *out = {data, dtg_dataset_release};
  return failed;
}

// All elements: a number each, or a list for each batch.
Outcome drain(const Data& data, Json* all) {
  *all = Json::array();
  while (true) {
    dtg_tensor* tensor = nullptr;
    int32_t more = 0;
    if (Outcome failed = outcome(dtg_dataset_next(data.get(), &tensor, 1, &more))) return failed;
    if (!more) return std::nullopt;
    const Tensor held = adopt(tensor);
    Json list = Json::array();
    for (double value : elements(held)) list.push_back(static_cast<int64_t>(value));
    if (dtg_tensor_rank(tensor) == 0) all->push_back(list.at(0));
    else all->push_back(list);
  }
}

// What `made` hands out, or its error, against the vector.
std::string compare(const Outcome& made, const Data& data, const Json& wanted) {
  Json got;
  Outcome failed = made;
  if (!failed) failed = drain(data, &got);
  if (wanted.is_object()) {
    const std::string code = wanted.at("error");
    if (!failed) return "gives " + got.dump() + ", expected " + code;
    return dtg_code_name(failed->code) == code ? "" : "expected " + code + ": " + failed->text;
  }
  if (failed) return failed->text;
  return got == wanted ? "" : "gives " + got.dump() + ", expected " + wanted.dump();
}

std::string check_shard(const Json& row) {
  const int64_t count = row.at("num_shards");
  for (int64_t i = 0; i < count; ++i) {
    Data data;
    Outcome made = range(row.at("range"), &data);
    if (!made) made = outcome(dtg_dataset_shard(data.get(), count, i));
    const std::string why = compare(made, data, row.at("shards").at(static_cast<size_t>(i)));
    if (!why.empty()) return "shard " + std::to_string(i) + " " + why;
  }
  return "";
}

std::string check_auto_shard(const Json& row) {
  const int64_t count = row.at("num_workers");
  for (int64_t i = 0; i < count; ++i) {
    Data data;
    Outcome made = range(row.at("range"), &data);
    if (!made) made = outcome(dtg_dataset_batch(data.get(), row.at("batch"), 0));
    if (!made) made = outcome(dtg_dataset_auto_shard(data.get(), count, i));
    const std::string why = compare(made, data, row.at("per_worker").at(static_cast<size_t>(i)));
    if (!why.empty()) return "worker " + std::to_string(i) + " " + why;
  }
  return "";
}

std::string check_batch_sizes(const Json& row) {
  const int64_t workers = row.at("num_workers");
  for (int64_t i = 0; i < workers; ++i) {
    std::vector<int64_t> sizes(256);
    size_t count = 0;
    if (Outcome failed = outcome(
            dtg_batch_sizes(row.at("global_batch"), workers, row.at("replicas_per_worker"), i, sizes.data(), sizes.size(), &count))) {
      return failed->text;
    }
    sizes.resize(count);
    const Json got = sizes, &wanted = row.at("batch_sizes_for_worker").at(static_cast<size_t>(i));
    if (got != wanted) return "worker " + std::to_string(i) + " gets " + got.dump() + ", expected " + wanted.dump();
  }
  return "";
}

std::string check_rebatch(const Json& row) {
  Data data;
  Outcome made = range(row.at("range"), &data);
  if (!made) made = outcome(dtg_dataset_batch(data.get(), row.at("batch"), row.at("drop_remainder").get<bool>()));
  if (!made) made = outcome(dtg_dataset_rebatch(data.get(), row.at("num_replicas")));
  return compare(made, data, row.at("rebatched"));
}

}  // namespace

void check_data_sharding(const std::string& path, const Json& file, const Options& options, Report& report) {
  const std::pair<const char*, std::string (*)(const Json&)> sections[] = {
      {"shard", check_shard}, {"auto_shard", check_auto_shard}, {"batch_sizes", check_batch_sizes}, {"rebatch", check_rebatch}};
  for (const auto& [section, check] : sections) {
    int number = 0;
    for (const Json& row : file.at(section)) {
      const std::string name = stem(path) + "/" + section + " " + std::to_string(number++);
      if (!options.wants(name)) continue;
      const std::string why = row.value("auto_shard_policy", "DATA") == "DATA" ? check(row) : "a policy other than DATA";
      report.add(name, why.empty() ? Verdict::passed() : Verdict::failed(why));
    }
  }
}

}  // namespace dtg::oracle
