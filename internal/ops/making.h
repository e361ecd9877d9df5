// A function while an op's gradient makes it: arguments first, then results. Owner: who makes it, on the stack; the thread that builds the
// graph.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/function.h"

namespace dtg::ops {

struct Making {
  explicit Making(std::string function_name) { parts.name = std::move(function_name); }
  Status begin(const OpTable& ops) {
    DTG_ASSIGN(parts.graph, Graph::create(&ops));
    return {};
  }
  Graph& graph() { return *parts.graph; }
  Result<Value> argument(const ValueInfo& info) {
    DTG_ASSIGN(const Value made, parts.graph->add_argument(info));
    parts.arguments.push_back(made);
    return made;
  }
  Result<std::vector<Value>> arguments(std::span<const ValueInfo> infos) {
    std::vector<Value> made;
    for (const ValueInfo& info : infos) {
      DTG_ASSIGN(const Value one, argument(info));
      made.push_back(one);
    }
    return made;
  }
  void give(std::span<const Value> values) { parts.results.insert(parts.results.end(), values.begin(), values.end()); }
  Result<FunctionRef> end() {
    DTG_ASSIGN(Ref<const Function> made, Function::make(std::move(parts)));
    return FunctionRef(std::move(made));
  }

  Function::Parts parts;
};

}  // namespace dtg::ops
