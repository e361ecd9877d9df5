// Building calls. See closure.h.
#include "graph/closure.h"

#include <algorithm>
#include <new>

#include "graph/build.h"

namespace dtg {
namespace {

// The function of `body` with those of the captured values as arguments that are wanted.
Result<Closure> look(const Function::Parts& with, std::span<const Graph::Capture> captures, std::span<const char> wanted) {
  Function::Parts parts = with;
  Closure made;
  made.own = parts.arguments.size();
  for (size_t i = 0; i < captures.size(); ++i) {
    if (!wanted[i]) continue;
    parts.arguments.push_back(captures[i].argument);
    made.captured.push_back(captures[i].outer);
  }
  DTG_ASSIGN(made.function, Function::make(std::move(parts)));
  return made;
}

}  // namespace

Result<Closure> finish_function(Ref<Graph> body, std::string name, std::vector<Value> results, std::vector<NodeId> controls) {
  if (body->is_closed()) return failed_precondition("finish function \"%s\": that was done already", name.c_str());
  for (Value& result : results) {
    if (!body->outer() || !result.valid() || result.tag() == body->tag()) continue;
    auto captured = body->capture(result);
    if (!captured.ok()) return captured.status().with_context("finish function \"" + name + "\", a result");
    result = captured.value();
  }
  const std::vector<Graph::Capture> captures = body->captures();
  std::vector<Value> own = body->arguments();
  const Function::Parts parts{.name = std::move(name),
                              .graph = std::move(body),
                              .arguments = std::move(own),
                              .results = std::move(results),
                              .controls = std::move(controls)};
  std::vector<char> wanted(captures.size(), 1);
  DTG_ASSIGN(Closure made, look(parts, captures, wanted));
  // What was captured for a node that nobody needs, or that was refused, would have to be there in each call: a second look leaves it out.
  // The body is closed by now, so where there is no memory for that the first one stays.
  try {
    for (;;) {
      for (size_t i = 0; i < captures.size(); ++i)
        wanted[i] = std::ranges::binary_search(made.function->needed(), captures[i].argument.node());
      if (std::ranges::count(wanted, 1) == static_cast<ptrdiff_t>(made.captured.size())) return made;
      auto less = look(parts, captures, wanted);
      if (!less.ok()) return made;
      made = less.take();
    }
  } catch (const std::bad_alloc&) {
    return made;
  }
}

Status unite(const Graph& around, std::span<Closure> closures, std::span<const bool> hand_on) {
  std::vector<Value> all;
  for (const Closure& closure : closures) {
    for (Value value : closure.captured) {
      if (std::ranges::find(all, value) == all.end()) all.push_back(value);
    }
  }
  for (size_t k = 0; k < closures.size(); ++k) {
    Closure& closure = closures[k];
    const Function& from = *closure.function;
    if (closure.captured == all && (!hand_on[k] || all.empty())) continue;
    Function::Parts parts;
    parts.name = from.name();
    parts.graph = from.shared_graph();
    parts.arguments.assign(from.arguments().begin(), from.arguments().begin() + static_cast<std::ptrdiff_t>(closure.own));
    parts.results.assign(from.results().begin(), from.results().end());
    parts.controls.assign(from.targets().begin(), from.targets().end());
    for (Value value : all) {
      const auto at = std::ranges::find(closure.captured, value);
      Value argument;
      if (at != closure.captured.end()) {
        argument = from.arguments()[closure.own + static_cast<size_t>(at - closure.captured.begin())];
      } else {
        DTG_ASSIGN(argument, parts.graph->add_argument(around.info(value)));
      }
      parts.arguments.push_back(argument);
      if (hand_on[k]) parts.results.push_back(argument);
    }
    DTG_ASSIGN(closure.function, Function::make(std::move(parts)));
    closure.captured = all;
  }
  return {};
}

namespace {

AttrValue types_of_results(const Function& function) {
  std::vector<DType> types;
  for (size_t r = 0; r < function.results().size(); ++r) types.push_back(function.result_info(r).dtype);
  return AttrValue(std::move(types));
}

Status check_place(const Graph& graph, const Closure& closure) {
  const uint32_t outer = closure.function->graph().outer_tag();
  if (outer == 0 || outer == graph.tag()) return {};
  return invalid_argument("function \"%s\" was begun inside another graph; it can be called only from that one",
                          closure.function->name().c_str());
}

Result<std::vector<Value>> add(Graph& graph, std::string_view op, std::string_view name, std::span<const Value> inputs,
                               std::span<const Attr> attrs, size_t results) {
  DTG_ASSIGN(const NodeId id, graph.add({.op = op, .name = name, .inputs = inputs, .attrs = attrs}));
  std::vector<Value> outputs;
  for (uint32_t o = 0; o < results; ++o) outputs.push_back(graph.value(id, o));
  return outputs;
}

// As TensorFlow's builders ask for; the ops themselves take what is no scalar for true where it has elements.
Status check_condition(const ValueInfo& condition, const char* what) {
  if (!condition.shape.has_rank() || condition.shape.rank() == 0) return {};
  return invalid_argument("%s: the condition is %s%s; one scalar decides, so take All or Any of it", what, dtype_name(condition.dtype),
                          condition.shape.text().c_str());
}

Status check_arguments(const Closure& closure, size_t wanted, const char* what) {
  if (closure.own == wanted) return {};
  return invalid_argument("%s: function \"%s\" has %zu arguments, %zu are given", what, closure.function->name().c_str(), closure.own,
                          wanted);
}

}  // namespace

Result<std::vector<Value>> add_if(Graph& graph, Value condition, Closure then_branch, Closure else_branch, std::string_view name) {
  // One of a graph around this one is captured.
  if (graph.check(condition).ok()) DTG_TRY(check_condition(graph.info(condition), "If"));
  Closure both[] = {std::move(then_branch), std::move(else_branch)};
  for (const Closure& closure : both) {
    DTG_TRY(check_place(graph, closure));
    DTG_TRY(check_arguments(closure, 0, "If"));
  }
  const bool hand_on[] = {false, false};
  DTG_TRY(unite(graph, both, hand_on));
  std::vector<Value> inputs = {condition};
  inputs.insert(inputs.end(), both[0].captured.begin(), both[0].captured.end());
  const bool stateful = both[0].function->is_stateful() || both[1].function->is_stateful();
  const Attr attrs[] = {{"Tout", types_of_results(*both[0].function)},
                        {"then_branch", AttrValue(FunctionRef(both[0].function))},
                        {"else_branch", AttrValue(FunctionRef(both[1].function))}};
  return add(graph, stateful ? "If" : "StatelessIf", name, inputs, attrs, both[0].function->results().size());
}

Result<std::vector<Value>> add_case(Graph& graph, Value index, std::vector<Closure> branches, std::string_view name) {
  if (branches.empty()) return invalid_argument("Case: it needs at least one branch");
  bool stateful = false;
  for (const Closure& closure : branches) {
    DTG_TRY(check_place(graph, closure));
    DTG_TRY(check_arguments(closure, 0, "Case"));
    stateful |= closure.function->is_stateful();
  }
  const std::unique_ptr<bool[]> hand_on(new bool[branches.size()]());
  DTG_TRY(unite(graph, branches, {hand_on.get(), branches.size()}));
  std::vector<Value> inputs = {index};
  inputs.insert(inputs.end(), branches[0].captured.begin(), branches[0].captured.end());
  std::vector<FunctionRef> functions;
  for (const Closure& closure : branches) functions.emplace_back(closure.function);
  const Attr attrs[] = {{"Tout", types_of_results(*branches[0].function)}, {"branches", AttrValue(std::move(functions))}};
  return add(graph, stateful ? "Case" : "StatelessCase", name, inputs, attrs, branches[0].function->results().size());
}

Result<std::vector<Value>> add_while(Graph& graph, std::span<const Value> start, Closure condition, Closure body, std::string_view name) {
  Closure both[] = {std::move(condition), std::move(body)};
  for (const Closure& closure : both) {
    DTG_TRY(check_place(graph, closure));
    DTG_TRY(check_arguments(closure, start.size(), "While"));
  }
  if (both[1].function->results().size() != start.size()) {
    return invalid_argument("While: the body gives %zu values for %zu loop variables", both[1].function->results().size(), start.size());
  }
  if (both[0].function->results().size() == 1) DTG_TRY(check_condition(both[0].function->result_info(0), "While"));
  const bool hand_on[] = {false, true};
  DTG_TRY(unite(graph, both, hand_on));
  std::vector<Value> inputs(start.begin(), start.end());
  inputs.insert(inputs.end(), both[1].captured.begin(), both[1].captured.end());
  const bool stateful = both[0].function->is_stateful() || both[1].function->is_stateful();
  const Attr attrs[] = {{"cond", AttrValue(FunctionRef(both[0].function))}, {"body", AttrValue(FunctionRef(both[1].function))}};
  return add(graph, stateful ? "While" : "StatelessWhile", name, inputs, attrs, start.size());
}

Result<std::vector<Value>> add_call(Graph& graph, std::span<const Value> arguments, Closure function, std::string_view name) {
  DTG_TRY(check_place(graph, function));
  DTG_TRY(check_arguments(function, arguments.size(), "call"));
  std::vector<Value> inputs(arguments.begin(), arguments.end());
  inputs.insert(inputs.end(), function.captured.begin(), function.captured.end());
  const Attr attrs[] = {{"Tout", types_of_results(*function.function)}, {"f", AttrValue(FunctionRef(function.function))}};
  return add(graph, function.function->is_stateful() ? "StatefulPartitionedCall" : "PartitionedCall", name, inputs, attrs,
             function.function->results().size());
}

}  // namespace dtg
