// The kinds of files that oracle_ps reads, one function each. Each reports every case of its file. One thread.
#pragma once

#include <string>

#include "program.h"
#include "report.h"

namespace dtg::oracle {

// Queues and accumulators (events.cc).
void check_events(const std::string& path, const Json& file, const Options& options, Report& report);
// Devices of ops under replica_device_setter (placement.cc).
void check_placement(const std::string& path, const Json& file, const Options& options, Report& report);
// Reading, merging and placing device names (device_names.cc).
void check_device_names(const std::string& path, const Json& file, const Options& options, Report& report);
// Cluster, task and target of a TF_CONFIG (tf_config.cc).
void check_tf_config(const std::string& path, const Json& file, const Options& options, Report& report);
// Shards and batches of data sets (data_sharding.cc).
void check_data_sharding(const std::string& path, const Json& file, const Options& options, Report& report);
// Numbers of shards (partitioners.cc).
void check_partitioners(const std::string& path, const Json& file, const Options& options, Report& report);

// The bytes of a string of the ABI, which is released.
std::string take_string(dtg_string* string);
// The device that a node asks for.
std::string device_of(dtg_graph* graph, dtg_value value);

}  // namespace dtg::oracle
