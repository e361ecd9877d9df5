// Explain: a plan for people: one page of text per pass, and one for the program that came of it. Pure; one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exec/program.h"
#include "plan/partition.h"

namespace dtg {

struct PlanPage {
  std::string name;  // of the pass; "program" or "parts" for the last
  std::string text;  // lines
};
using PlanPages = std::vector<PlanPage>;

// Plans as Plan::make does, and lets go of the plan. Resources are bound in the context's store.
Result<PlanPages> explain(const PlanContext& context, Ref<Graph> graph, PlanRequest request);
// Up to `place` on all devices of a cluster, and what each task would get.
Result<PlanPages> explain_parts(const PlanContext& context, const Graph& graph, const PlanRequest& request, const TaskMap& map);

// The page of that name; "" is the last pass with what came of it, "all" is everything. A line "== NAME" stands before each where there
// may be several.
Result<std::string> choose_pages(const PlanPages& pages, std::string_view name);

// What emission and layout decided: segments with the instructions of their first chunks, and where each value lives.
std::string program_text(const Ir& ir, const Program& program);

// All that a graph is for: fetches what nobody reads and can be fetched, and runs the other nodes that nobody waits for. What is fed stays
// out of it.
void ask_for_everything(const Graph& graph, PlanRequest& request);

}  // namespace dtg
