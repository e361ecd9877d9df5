// The sections "scripts" and "graphs": nodes with state and nodes that share a handle; see sections.h.
#include "sections.h"

namespace dtg::oracle {
namespace {

using Variables = std::map<std::string, dtg_value>;

// A script under way.
struct Script {
  Script(const std::string& type, const Json& json)
      : entry(json), op(type), other(other_dtype(json)), tolerance{json.at("rtol"), json.at("atol")} {}

  const Json& entry;
  std::string op;
  std::string other;
  Tolerance tolerance;
  Program program;
  Variables variables;
  std::vector<dtg_value> outputs;  // of the node of the step before
  std::vector<dtg_value> inputs;   // its inputs that are fed
  std::vector<Feed> feeds;
  bool has_results = false;
};

Verdict start_variables(Script& script) {
  const Json none = Json::array();
  const Json& empty = script.entry.contains("uninitialized") ? script.entry.at("uninitialized") : none;
  for (const auto& [name, value] : script.entry.at("variables").items()) {
    std::string beyond;
    const Tensor start = make_tensor(value, &beyond);
    if (!start) return Verdict::skipped(beyond);
    const std::vector<int64_t> shape = shape_of(start);
    dtg_value& handle = script.variables[name];
    const dtg_dtype dtype = dtg_tensor_dtype(start.get());
    if (Outcome failed = script.program.variable(name, dtype, &shape, &handle)) {
      return judge_failure(*failed, script.other, "variable " + name);
    }
    if (std::find(empty.begin(), empty.end(), name) != empty.end()) continue;
    if (Outcome failed = script.program.assign(handle, start)) {
      return judge_failure(*failed, script.other, "start of " + name);
    }
  }
  return Verdict::passed();
}

// Adds the node of a step; inputs that are not resources are placeholders, so that the same node can run again.
Outcome add_node(Script& script, const Json& step, std::string* beyond) {
  Node node(script.op);
  script.feeds.clear();
  script.inputs.clear();
  const auto entry = op_table().find(script.op);
  if (entry == op_table().end()) return Failure{DTG_NOT_FOUND, script.op + " is not in this library"};
  const Json handles = script.entry.value("handles", Json::object());
  for (const OpEntry::Argument& argument : entry->second.inputs) {
    dtg_value value{};
    if (argument.type == "resource") {
      const auto variable = script.variables.find(handles.value(argument.name, argument.name));
      if (variable == script.variables.end()) return Failure{DTG_NOT_FOUND, "no variable for " + argument.name};
      value = variable->second;
    } else {
      if (!step.at("inputs").contains(argument.name)) return Failure{DTG_NOT_FOUND, "the step has no " + argument.name};
      const Tensor tensor = make_tensor(step.at("inputs").at(argument.name), beyond);
      if (!tensor) return std::nullopt;
      if (script.entry.at("variables").empty()) {
        if (Outcome failed = script.program.placeholder(dtg_tensor_dtype(tensor.get()), &value)) return failed;
        script.inputs.push_back(value);
        script.feeds.push_back({value, tensor});
      } else if (Outcome failed = script.program.constant(tensor, &value)) {
        return failed;
      }
    }
    node.input(value);
  }
  *beyond = node.json(script.entry.at("attrs"));
  if (!beyond->empty()) return std::nullopt;
  if (Outcome failed = node.add(script.program.graph(), &script.outputs)) return failed;
  dtg_dtype dtype = 0;
  script.has_results = !outcome(dtg_value_dtype(script.program.graph(), script.outputs[0], &dtype));
  return std::nullopt;
}

Verdict run_step(Script& script, const Json& step) {
  std::string beyond;
  Outcome failed;
  std::vector<Tensor> results;
  if (!step.value("same_node", false)) failed = add_node(script, step, &beyond);
  if (!beyond.empty()) return Verdict::skipped(beyond);
  if (!failed) {
    if (script.has_results) failed = script.program.run(script.feeds, script.outputs, {}, &results);
    else failed = script.program.run(script.feeds, {}, script.outputs, nullptr);
  }
  if (step.contains("error")) {
    // Of a variable without a value TensorFlow says one of three codes, by the op; here it is one, whatever is asked of it.
    const bool no_value = script.entry.contains("uninitialized") && failed && failed->code == DTG_FAILED_PRECONDITION;
    const std::string why = no_value ? "" : error_difference(step, failed);
    if (why.empty()) return Verdict::passed();
    return failed ? judge_failure(*failed, script.other, why) : Verdict::failed(why);
  }
  if (failed) return judge_failure(*failed, script.other, "node");
  if (!step.contains("outputs")) return Verdict::passed();
  const Json& wanted = step.at("outputs");
  if (wanted.size() != results.size()) return Verdict::failed("the number of outputs differs");
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::string why = difference(wanted[i], results[i], script.tolerance);
    if (!why.empty()) return Verdict::failed("output " + std::to_string(i) + ": " + why);
  }
  return Verdict::passed();
}

Verdict compare_variables(Script& script, const Json& after) {
  for (const auto& [name, wanted] : after.items()) {
    const std::string dtype = script.entry.at("variables").at(name).at("dtype");
    Tensor got;
    const Outcome failed = script.program.read(script.variables.at(name), dtg_dtype_from_name(dtype.c_str()), &got);
    if (wanted.is_null()) {
      if (!failed) return Verdict::failed(name + " has a value, expected none");
      continue;
    }
    if (failed) return judge_failure(*failed, script.other, "reading " + name);
    const std::string why = difference(wanted, got, script.tolerance);
    if (!why.empty()) return Verdict::failed(name + ": " + why);
  }
  return Verdict::passed();
}

}  // namespace

Verdict check_script(const std::string& op, const Json& entry) {
  Script script(op, entry);
  if (Verdict verdict = start_variables(script); !verdict) return verdict;
  const Json& steps = entry.at("steps");
  for (size_t i = 0; i < steps.size(); ++i) {
    Verdict verdict = run_step(script, steps[i]);
    if (verdict && i < entry.at("after").size()) verdict = compare_variables(script, entry.at("after")[i]);
    if (verdict.kind == Verdict::kFailed) verdict.why = "step " + std::to_string(i) + ": " + verdict.why;
    if (!verdict) return verdict;
  }
  return Verdict::passed();
}

Verdict check_graph(const Json& entry) {
  Program program;
  std::string beyond;
  for (const Json& node : entry.at("nodes")) {
    if (beyond = missing_op(node.at("op")); !beyond.empty()) return Verdict::skipped(beyond);
  }
  Outcome failed;
  std::vector<dtg_value> outputs;
  for (const auto& [name, value] : entry.at("consts").items()) {
    const Tensor tensor = make_tensor(value, &beyond);
    if (!tensor) return Verdict::skipped(beyond);
    Node node("Const", name);
    failed = node.type("dtype", dtg_tensor_dtype(tensor.get())).tensor("value", tensor).add(program.graph(), &outputs);
    if (failed) return Verdict::failed(failed->text);
  }
  for (const Json& item : entry.at("nodes")) {
    Node node(item.at("op"), item.at("name"));
    for (const std::string input : item.at("inputs")) {
      const bool control = input[0] == '^';
      dtg_value value{};
      failed = outcome(dtg_graph_find(program.graph(), input.c_str() + control, DTG_STRLEN, &value));
      if (failed) return Verdict::failed(failed->text);
      if (control) node.control(value);
      else node.input(value);
    }
    if (beyond = node.json(item.at("attrs")); !beyond.empty()) return Verdict::skipped(beyond);
    if ((failed = node.add(program.graph(), &outputs))) break;
  }
  std::vector<dtg_value> fetches;
  std::vector<Tensor> results;
  for (const std::string name : entry.at("fetch")) {
    if (failed) break;
    failed = outcome(dtg_graph_find(program.graph(), name.c_str(), DTG_STRLEN, &fetches.emplace_back()));
  }
  if (!failed) failed = program.run({}, fetches, {}, &results);
  if (entry.contains("error")) {
    const std::string why = error_difference(entry, failed);
    return why.empty() ? Verdict::passed() : Verdict::failed(why);
  }
  if (failed) return Verdict::failed(failed->text);
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string why = difference(entry.at("outputs")[i], results[i], {entry.at("rtol"), entry.at("atol")});
    if (!why.empty()) return Verdict::failed("output " + std::to_string(i) + ": " + why);
  }
  return Verdict::passed();
}

}  // namespace dtg::oracle
