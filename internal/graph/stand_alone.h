// A function's body as a graph of its own, to be run by itself: a placeholder for each argument, what it captured as constants, and its
// results to be fetched. Pure; the function's graph is closed, so any thread.
#pragma once

#include <span>
#include <vector>

#include "graph/function.h"
#include "tensor/tensor.h"

namespace dtg {

struct StandAlone {
  Ref<Graph> graph;
  std::vector<Value> feeds;    // one for each of `arguments`
  std::vector<Value> fetches;  // one for each result
};

// `arguments`: what is known of those that are fed, which come first; the rest of the function's have the values of `captured`.
Result<StandAlone> stand_alone(const OpTable& ops, const Function& function, std::span<const PartialShape> arguments,
                               std::span<const Tensor> captured);

}  // namespace dtg
