// dtg/function.h: bodies of functions and the nodes that call them. One thread at a time adds to a graph and to the bodies in it.
#include "dtg/function.h"

#include "capi/graph.h"

namespace dtg::capi {
namespace {

Result<Closure> closure_of(const dtg_function* handle, const char* what) {
  const Held<FunctionObject> held(handle, HandleType::function);
  if (!held) return held.status().with_context(what);
  return held->closure;
}

Status give_outputs(const Result<std::vector<Value>>& made, dtg_value* outs, size_t num_outs) {
  DTG_TRY(made.status());
  if (num_outs > made.value().size()) {
    return invalid_argument("the functions give %zu results, room for %zu was given; the node was added", made.value().size(), num_outs);
  }
  for (size_t i = 0; i < num_outs; ++i) outs[i] = to_c(made.value()[i]);
  return {};
}

Result<std::vector<Value>> values_of(const dtg_value* values, size_t count, const char* what) {
  DTG_TRY(require_array(values, count, what));
  if (count > 0xffff) return invalid_argument("%s: %zu values; at most 65,535 are possible", what, count);
  std::vector<Value> list;
  for (size_t i = 0; i < count; ++i) list.push_back(value_of(values[i]));
  return list;
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_function_begin(dtg_graph* outer, const char* name, size_t name_len, dtg_graph** body) noexcept {
  return change_graph_object(outer, [&](GraphObject& graph) -> Status {
    DTG_TRY(require(body, "body"));
    DTG_ASSIGN(Ref<Graph> inside, Graph::create_inside(graph.graph));
    const std::string_view given = text(name, name_len);
    DTG_TRY(check_name(given, "name"));
    inside->set_function_name(given.empty() ? "function" : given);
    return give(HandleType::graph, make_ref<GraphObject>(graph.runtime, std::move(inside)), body);
  });
}

dtg_error* dtg_function_add_argument(dtg_graph* body, dtg_dtype dtype, const int64_t* dims, size_t rank, dtg_value* out) noexcept {
  return change_graph_object(body, [&](GraphObject& graph) -> Status {
    DTG_TRY(require(out, "out"));
    if (graph.graph->outer_tag() == 0)
      return invalid_argument("add an argument: the graph is no function's body; dtg_function_begin makes one");
    if (graph.graph->is_closed()) return failed_precondition("add an argument: the function was ended");
    if (!dtype_is_known(dtype) || dtype == 0) return invalid_argument("add an argument: %d is not an element type", dtype);
    PartialShape shape = PartialShape::unknown();
    if (rank != DTG_STRLEN) {
      if (rank > kRankMax) return invalid_argument("add an argument of rank %zu: at most %d is supported", rank, kRankMax);
      DTG_TRY(require_array(dims, rank, "dims"));
      DTG_ASSIGN(shape, PartialShape::make({dims, rank}));
    }
    const auto type = static_cast<DType>(dtype);
    DTG_ASSIGN(const Value made, graph.graph->add_argument({type, DType::invalid, is_holder(type) ? PartialShape::unknown() : shape}));
    *out = to_c(made);
    return {};
  });
}

dtg_error* dtg_function_add_argument_like(dtg_graph* body, dtg_value value, dtg_value* out) noexcept {
  return change_graph_object(body, [&](GraphObject& graph) -> Status {
    DTG_TRY(require(out, "out"));
    if (graph.graph->outer_tag() == 0)
      return invalid_argument("add an argument: the graph is no function's body; dtg_function_begin makes one");
    if (graph.graph->is_closed()) return failed_precondition("add an argument: the function was ended");
    Graph* const outer = graph.graph->outer();
    DTG_ASSIGN(const Value around, outer->capture(value_of(value)));
    DTG_ASSIGN(const Value made, graph.graph->add_argument(outer->info(around)));
    *out = to_c(made);
    return {};
  });
}

dtg_error* dtg_function_end(dtg_graph* body, const dtg_value* results, size_t num_results, const dtg_value* controls, size_t num_controls,
                            dtg_function** out) noexcept {
  return change_graph_object(body, [&](GraphObject& graph) -> Status {
    DTG_TRY(require(out, "out"));
    if (graph.graph->outer_tag() == 0)
      return invalid_argument("end a function: the graph is no function's body; dtg_function_begin makes one");
    DTG_ASSIGN(std::vector<Value> values, values_of(results, num_results, "results"));
    DTG_ASSIGN(const std::vector<Value> before, values_of(controls, num_controls, "controls"));
    std::vector<NodeId> nodes;
    for (Value value : before) {
      DTG_TRY(check_owner(*graph.graph, value));
      nodes.push_back(value.node());
    }
    // Before the body is closed, as it can be ended once.
    auto made = make_ref<FunctionObject>(graph.runtime, Closure());
    DTG_ASSIGN(made->closure, finish_function(graph.graph, graph.graph->function_name(), std::move(values), std::move(nodes)));
    return give(HandleType::function, std::move(made), out);
  });
}

dtg_function* dtg_function_retain(dtg_function* function) noexcept { return retain_handle(function, HandleType::function); }
void dtg_function_release(dtg_function* function) noexcept { release_handle(function, HandleType::function); }

dtg_error* dtg_function_captures(const dtg_function* function, dtg_value* values, size_t cap, size_t* count) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(count, "count"));
    DTG_TRY(require_array(values, cap, "values"));
    DTG_ASSIGN(const Closure closure, closure_of(function, "function"));
    *count = closure.captured.size();
    for (size_t i = 0; i < closure.captured.size() && i < cap; ++i) values[i] = to_c(closure.captured[i]);
    return {};
  });
}

dtg_error* dtg_graph_add_if(dtg_graph* handle, dtg_value condition, const dtg_function* then_branch, const dtg_function* else_branch,
                            dtg_value* outs, size_t num_outs) noexcept {
  return change_graph_object(handle, [&](GraphObject& graph) -> Status {
    DTG_TRY(require_array(outs, num_outs, "outs"));
    DTG_ASSIGN(Closure yes, closure_of(then_branch, "then_branch"));
    DTG_ASSIGN(Closure no, closure_of(else_branch, "else_branch"));
    return give_outputs(add_if(*graph.graph, value_of(condition), std::move(yes), std::move(no)), outs, num_outs);
  });
}

dtg_error* dtg_graph_add_case(dtg_graph* handle, dtg_value index, const dtg_function* const* branches, size_t num_branches, dtg_value* outs,
                              size_t num_outs) noexcept {
  return change_graph_object(handle, [&](GraphObject& graph) -> Status {
    DTG_TRY(require_array(outs, num_outs, "outs"));
    DTG_TRY(require_array(branches, num_branches, "branches"));
    if (num_branches > 0xffff) return invalid_argument("%zu branches; at most 65,535 are possible", num_branches);
    std::vector<Closure> closures;
    for (size_t i = 0; i < num_branches; ++i) {
      DTG_ASSIGN(Closure closure, closure_of(branches[i], "an entry of branches"));
      closures.push_back(std::move(closure));
    }
    return give_outputs(add_case(*graph.graph, value_of(index), std::move(closures)), outs, num_outs);
  });
}

dtg_error* dtg_graph_add_while(dtg_graph* handle, const dtg_value* start, size_t num_vars, const dtg_function* condition,
                               const dtg_function* body, dtg_value* outs) noexcept {
  return change_graph_object(handle, [&](GraphObject& graph) -> Status {
    DTG_TRY(require_array(outs, num_vars, "outs"));
    DTG_ASSIGN(const std::vector<Value> values, values_of(start, num_vars, "start"));
    DTG_ASSIGN(Closure test, closure_of(condition, "condition"));
    DTG_ASSIGN(Closure round, closure_of(body, "body"));
    return give_outputs(add_while(*graph.graph, values, std::move(test), std::move(round)), outs, num_vars);
  });
}

dtg_error* dtg_graph_add_call(dtg_graph* handle, const dtg_function* function, const dtg_value* arguments, size_t num_arguments,
                              dtg_value* outs, size_t num_outs) noexcept {
  return change_graph_object(handle, [&](GraphObject& graph) -> Status {
    DTG_TRY(require_array(outs, num_outs, "outs"));
    DTG_ASSIGN(const std::vector<Value> values, values_of(arguments, num_arguments, "arguments"));
    DTG_ASSIGN(Closure closure, closure_of(function, "function"));
    return give_outputs(add_call(*graph.graph, values, std::move(closure)), outs, num_outs);
  });
}

}  // extern "C"
