// oracle_ps DIR: what distributed training stands on, against what TensorFlow did: queues and accumulators, device names and
// setters, TF_CONFIG, shards of data, replicated training. Which file is of which kind shows in its fields; each kind has a file of its own
// here (ps.h). Other files of the folder are skipped.
#include "ps.h"
#include "replica_traces.h"

using namespace dtg::oracle;

namespace {

using Check = void (*)(const std::string&, const Json&, const Options&, Report&);

// The field of the first row of a list.
bool rows_have(const Json& file, const char* list, const char* field) {
  return file.contains(list) && !file.at(list).empty() && file.at(list)[0].contains(field);
}

Check kind_of(const Json& file) {
  if (rows_have(file, "sequences", "events")) return check_events;
  if (rows_have(file, "rows", "ops_in_creation_order")) return check_placement;
  if (rows_have(file, "rows", "TF_CONFIG")) return check_tf_config;
  if (rows_have(file, "merge", "outer")) return check_device_names;
  if (rows_have(file, "auto_shard", "per_worker")) return check_data_sharding;
  if (rows_have(file, "rows", "partitioner")) return check_partitioners;
  return nullptr;
}

void check_file(const std::string& path, const Json& file, const Options& options, Report& report) {
  if (is_replica_trace(file)) {
    if (options.wants(stem(path))) report.add(stem(path), check_replica_trace(file));
    return;
  }
  if (const Check check = kind_of(file)) return check(path, file, options, report);
  if (!options.wants(stem(path))) return;
  report.add(stem(path), Verdict::skipped("a file of another kind"));
}

}  // namespace

int main(int argc, char** argv) { return run_tool(argc, argv, "ps", check_file); }
