// Closures: functions that were built in sight of other values and took some of them along, and the nodes that call them. Whoever builds an
// If or a While from closures need not care what each of them captured: they get the same arguments here.
//
// Called by the thread that builds the graph.
#pragma once

#include <span>
#include <vector>

#include "graph/function.h"

namespace dtg {

struct Closure {
  Ref<const Function> function;  // its arguments: those that were asked for, then one per captured value
  size_t own = 0;                // how many were asked for
  std::vector<Value> captured;   // values of the graph around
};

// The body is done: no more nodes are added to it.
Result<Closure> finish_function(Ref<Graph> body, std::string name, std::vector<Value> results, std::vector<NodeId> controls = {});

// The same functions, called from `around`, each with an argument for whatever any of them captured, in one order, which `captured` of all
// of them is then. Where `hand_on`, they give those arguments back, after their results.
Status unite(const Graph& around, std::span<Closure> closures, std::span<const bool> hand_on);

// The node's outputs are what the functions give.
Result<std::vector<Value>> add_if(Graph& graph, Value condition, Closure then_branch, Closure else_branch, std::string_view name = {});
Result<std::vector<Value>> add_case(Graph& graph, Value index, std::vector<Closure> branches, std::string_view name = {});
Result<std::vector<Value>> add_while(Graph& graph, std::span<const Value> start, Closure condition, Closure body,
                                     std::string_view name = {});
Result<std::vector<Value>> add_call(Graph& graph, std::span<const Value> arguments, Closure function, std::string_view name = {});

}  // namespace dtg
