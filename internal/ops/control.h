// What the ops that call functions share: which functions a node calls, checked against its types, and shapes that several ways of
// getting to a value have in common. Pure functions; any thread.
#pragma once

#include <vector>

#include "graph/build.h"
#include "graph/function.h"
#include "graph/infer.h"

namespace dtg::ops {

// The function of an attribute; an error where there is none.
Result<const Function*> function_of(const Node& node, const char* attr);
// Those of a list, or of one or two attributes, in order.
Result<std::vector<const Function*>> branches_of(const Node& node);

// Takes `arguments` and gives `results`, by types.
Status check_signature(const Function& function, std::span<const DType> arguments, std::span<const DType> results);

// The narrowest shape that both have; dimensions in which they differ are open.
PartialShape common_shape(const PartialShape& a, const PartialShape& b);

// 0 for If and Case is the predicate: the arguments come after it.
int first_argument(const Node& node);
inline std::span<const Value> chooser_of(const Node& node) {
  return std::span(node.inputs).first(static_cast<size_t>(first_argument(node)));
}
// The attributes of a node that hold functions, with others in their place.
std::vector<Attr> function_attrs(const Node& node, const std::vector<FunctionRef>& functions);
// The inputs that output `output` of a node is: the one that its op hands on; of a call one for each of its functions, or an error where
// one of them does not give what it was given. None where the node makes it.
Result<std::vector<Value>> handed_on(const Node& node, uint32_t output);
// A call of one of as many functions as `call` has, by `chooser`, which is its predicate: each gives the values that are named for it. The
// first result.
Result<Value> choose_alike(Build& b, const Node& call, std::span<const Value> chooser, std::span<const std::vector<Value>> results);

}  // namespace dtg::ops
