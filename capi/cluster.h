// The cluster behind a handle, shared by cluster.cc (the value), graph.cc (device setters) and whoever starts servers.
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
