// Into how many shards TensorFlow's partitioners cut a variable, row by row; see ps.h.
#include "ps.h"

namespace dtg::oracle {
namespace {

// Those of tf.distribute and, under other words, those of TensorFlow 1 behind them.
dtg_partitioner read(const std::string& name, const Json& args) {
  dtg_partitioner partitioner = DTG_PARTITIONER_INIT;
  const auto said = [&](const char* word) { return args.contains(word) && !args.at(word).is_null(); };
  const auto given = [&](const char* a, const char* b, int64_t otherwise) -> int64_t {
    return said(a) ? args.at(a).get<int64_t>() : said(b) ? args.at(b).get<int64_t>() : otherwise;
  };
  partitioner.axis = args.value("axis", 0);
  if (name == "FixedShardsPartitioner" || name == "v1.fixed_size_partitioner") {
    partitioner.num_shards = args.at("num_shards");
  } else if (name == "MinSizePartitioner" || name == "v1.min_max_variable_partitioner") {
    partitioner.kind = DTG_PARTITIONER_MIN_SIZE;
    partitioner.shard_bytes = given("min_shard_bytes", "min_slice_size", 256 << 10);
    partitioner.max_shards = given("max_shards", "max_partitions", 1);
  } else {
    partitioner.kind = DTG_PARTITIONER_MAX_SIZE;
    partitioner.shard_bytes = args.at("max_shard_bytes");
    partitioner.max_shards = given("max_shards", "max_partitions", 0);
  }
  // A size of nothing is an error there; here 0 is the default.
  if (partitioner.kind != DTG_PARTITIONER_FIXED_SHARDS && partitioner.shard_bytes == 0) partitioner.shard_bytes = -1;
  if (said("max_shards") && partitioner.max_shards == 0) partitioner.max_shards = -1;
  partitioner.bytes_per_string = given("bytes_per_string", "bytes_per_string_element", 16);
  return partitioner;
}

std::string check(const Json& row) {
  const std::vector<int64_t> dims = row.at("shape");
  const dtg_partitioner partitioner = read(row.at("partitioner"), row.at("args"));
  int64_t shards = 0;
  const Outcome failed = outcome(dtg_partitioner_shards(&partitioner, dtg_dtype_from_name(row.at("dtype").get<std::string>().c_str()),
                                                        dims.data(), dims.size(), &shards));
  // TensorFlow fails in several ways where no cut is possible; here each is INVALID_ARGUMENT.
  if (row.contains("error")) {
    if (!failed) return "gives " + std::to_string(shards) + ", expected an error (" + row.at("error").get<std::string>() + ")";
    return failed->code == DTG_INVALID_ARGUMENT ? "" : failed->text;
  }
  // TensorFlow 1 cuts a variable into no shards at all when it is told to; nothing can be kept so, and here that is refused.
  if (partitioner.kind == DTG_PARTITIONER_FIXED_SHARDS && partitioner.num_shards == 0)
    return failed && failed->code == DTG_INVALID_ARGUMENT ? "" : "gives " + std::to_string(shards) + " for no shards, expected an error";
  if (failed) return failed->text;
  Json got = std::vector<int64_t>(dims.size(), 1);
  got.at(static_cast<size_t>(partitioner.axis)) = shards;
  return got == row.at("partitions") ? "" : "gives " + got.dump() + ", expected " + row.at("partitions").dump();
}

}  // namespace

void check_partitioners(const std::string& path, const Json& file, const Options& options, Report& report) {
  int number = 0;
  for (const Json& row : file.at("rows")) {
    const std::string name = stem(path) + "/" + row.at("partitioner").get<std::string>() + " " + std::to_string(number++);
    if (!options.wants(name)) continue;
    const std::string why = check(row);
    report.add(name, why.empty() ? Verdict::passed() : Verdict::failed(why));
  }
}

}  // namespace dtg::oracle
