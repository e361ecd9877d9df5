// ClusterObject: the cluster spec behind a dtg_cluster. Immutable, owned by its handle; used by cluster.cc, by graph.cc
// (device setters) and by server.cc. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/ref.h"
#include "cluster/spec.h"

namespace dtg::capi {

class ClusterObject final : public RefCounted {
 public:
  explicit ClusterObject(ClusterSpec s) : spec(std::move(s)) {
    for (const ClusterSpec::Task& task : spec.tasks()) addresses.push_back(task.address.text());
  }
  const ClusterSpec spec;
  std::vector<std::string> addresses;  // of spec.tasks(), for hosts to look at
};

}  // namespace dtg::capi
