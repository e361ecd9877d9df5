// A graph to verified FlatBuffers bytes and back. Decoding trusts nothing: the bytes are verified, what they would
// take in memory is counted (aliases once per use) and reserved, and every node goes through Graph::add. Pure
// functions; the graph's own rules say who may add to it.
#pragma once

#include <string>
#include <string_view>

#include "base/budget.h"
#include "graph/graph.h"
#include "wire/limits.h"

namespace dtg {

// The nodes that exist at the time of the call. INVALID_ARGUMENT or RESOURCE_EXHAUSTED when the graph is beyond
// the limits, UNIMPLEMENTED for a constant of a type without plain bytes.
Result<std::string> encode_graph(const Graph& graph, const wire::Limits& limits = {});

// Adds the nodes to an empty graph, under their names and numbers. DATA_LOSS when the bytes are not a whole
// graph, INVALID_ARGUMENT when a node does not hold, FAILED_PRECONDITION when the graph has nodes,
// RESOURCE_EXHAUSTED beyond the limits or the budget. After an error the graph may hold the nodes before the
// bad one.
Status decode_graph(std::string_view bytes, Graph& into, MemoryBudget& budget, const wire::Limits& limits = {});

// Writes into graph bytes the checksum that they should have; for tests and fuzzing, which change bytes on purpose.
// Bytes that are no graph stay as they are.
void seal_graph(std::string& bytes);

// What decode_graph would reserve, for those who keep the graph and its reservation.
Result<int64_t> graph_memory(std::string_view bytes, const wire::Limits& limits = {});

}  // namespace dtg
