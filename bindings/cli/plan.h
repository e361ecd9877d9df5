// dtg graph --plan: how a graph would be planned, by the library's own account. Main thread.
#pragma once

#include <dtg/dtg.h>

#include <cstdint>
#include <string>

namespace dtg::cli {

struct PlanWish {
  std::string file;
  std::string pass;  // "": the last one and what came of it
  int64_t dim = 1;   // for open dimensions of placeholders
  int64_t devices = 1;
  bool as_json = false;
};

// Shows it; gives the exit code.
int show_plan(dtg_graph* graph, const PlanWish& wish);

}  // namespace dtg::cli
