// TfConfig: what a launcher says in the variable TF_CONFIG: the cluster, and which task of it this process is. Read as
// TensorFlow's TFConfigClusterResolver reads it; Kubeflow's "sparseCluster" counts as a cluster. A value.
//
//   DTG_ASSIGN(const TfConfig self, TfConfig::from_environment());
//   if (self.is_chief()) ...
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cluster/spec.h"

namespace dtg {

struct TfConfig {
  ClusterSpec cluster;       // no jobs: this process is alone
  std::string type;          // of the task; "" when not said
  std::optional<int> index;  // as said; one of its job's, where the cluster has that job
  std::string rpc_layer;     // "" when not said

  static constexpr size_t kLayerMax = 31;

  // `json` must be JSON: "{}" and "[]" say nothing, "" is an error.
  static Result<TfConfig> parse(std::string_view json);
  // Of the variable TF_CONFIG; when it is not set, this process is alone.
  static Result<TfConfig> from_environment();

  // The chief, the master, worker 0 where the cluster has neither, and whoever is alone.
  bool is_chief() const;
  // Chief 0, worker i behind the chief; others by their index.
  int id() const;
  int num_workers() const;  // chief included, at least 1
  int num_ps() const { return static_cast<int>(cluster.task_count("ps")); }
};

// What to connect to in order to be driven by that task: its address, "LAYER://" before it when there is a layer; "" in
// a cluster of at most one task. An error when the cluster has no such task.
Result<std::string> task_target(const ClusterSpec& cluster, std::string_view type, std::optional<int> index, std::string_view rpc_layer);

}  // namespace dtg
