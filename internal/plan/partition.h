// Partition: cuts what a run needs by task. Each task gets a graph of its own, with the nodes placed on it under
// their names, and private ends of edges where a value or an order crosses to another task: _Send where it is made,
// _Recv where it is used, one pair per value and receiving task, numbered at plan time. The home part is the one of
// whoever drives the run: feeds enter and fetches leave there, and it joins the other parts. What one of these makes for
// another goes there directly, or through home where the two cannot meet.
//
// Values that are known beforehand do not travel: each part has its own constant. Pure; one thread.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plan/passes.h"

namespace dtg {

// Where the devices of a placer are.
struct TaskMap {
  std::vector<std::string> tasks;                 // "/job:ps/replica:0/task:0", ...
  std::vector<uint32_t> task_of_device;           // device of the placer -> task
  uint32_t home = 0;                              // task of whoever drives; may have no device
  std::set<std::pair<uint32_t, uint32_t>> apart;  // (from, to): tasks with no way but through home
};

struct Part {
  uint32_t task = 0;
  Ref<Graph> graph;
  PlanRequest request;  // feeds and fetches for home only
};

struct Edge {
  uint32_t from = 0;  // tasks
  uint32_t to = 0;
};

struct Partition {
  Part home;
  std::vector<Part> others;  // _Join k of home waits for others[k]
  std::vector<Edge> edges;
};

// `observer` as in run_passes.
Result<Partition> partition(const PlanContext& context, const Graph& graph, const PlanRequest& request, const TaskMap& map,
                            PassObserver observer = nullptr, void* user = nullptr);

}  // namespace dtg
