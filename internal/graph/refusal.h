// What the error of a node that was refused tells besides its reason: the node's name, where the program asked for it, and
// that it was being built. One form, for what Graph::add refuses and for what is refused before a spec gets there. Any thread
// that may add to the graph.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace dtg {

// `why`, as the error of the node `name`: "add "scores" at train.c:42: <why>".
Status refuse_node(std::string_view name, std::string_view location, const Status& why);

// The name that a node of that spec would have had, as far as it can be told: one without a name is called by its op. For
// refusals only; nothing is taken.
std::string name_of_refused(Graph& graph, const NodeSpec& spec);

}  // namespace dtg
