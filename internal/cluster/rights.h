// Rights: what a session may do at a task, by the task it speaks for. The chief and a client that is no task may do
// everything; any other task may create, attach, read, apply, accumulate, queue and count, but not overwrite what has a
// value, destroy, reset or end the job. Pure; any thread.
#pragma once

#include <string_view>

#include "cluster/spec.h"
#include "graph/graph.h"

namespace dtg {

enum class Rights { all, worker };

// Of the task that the session at the other end speaks for; empty for a client that is no task.
Rights rights_of(const ClusterSpec& cluster, std::string_view peer_task);
// May a graph from there be prepared here at all?
Status check_graph(const Graph& graph, Rights rights);
Status check_chief(Rights rights, std::string_view peer_task, const char* what);

}  // namespace dtg
