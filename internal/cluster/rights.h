// Rights: which party a session is, by the task it speaks for, and what its graphs may hold. What a party may do stands in one table
// (exec/rights.h), which each kernel that takes a resource asks; what is refused here, before anything runs, is only refused earlier and
// in fewer words. Pure; any thread.
#pragma once

#include <string_view>

#include "cluster/spec.h"
#include "exec/rights.h"
#include "graph/graph.h"

namespace dtg {

// Of the task that the session at the other end speaks for; empty for a client that is no task. The chief is a task of the job "chief"
// or "master", worker 0 where there is neither, and a client where there is no worker 0.
Party party_of(const ClusterSpec& cluster, std::string_view peer_task);
// At `task`, one of ours.
Ref<const Rights> rights_of(const ClusterSpec& cluster, const std::string& peer_task, const std::string& task);
// May a graph from there be prepared here at all?
Status check_graph(const Graph& graph, const Rights& rights);

}  // namespace dtg
