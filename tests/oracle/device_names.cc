// Device names: what a device scope makes of a text, what nested scopes make of two, and where a node with that device may
// run; see ps.h. In TensorFlow the client's grammar (scopes) and the runtime's (nodes) differ. Here a node's device is
// read by both, the runtime's first, so what only the client reads is a departure for nodes, not an error.
#include "ps.h"

namespace dtg::oracle {
namespace {

Outcome push(dtg_graph* graph, const std::string& device) { return outcome(dtg_graph_push_device(graph, device.c_str(), device.size())); }

// The device of a node under these scopes.
Outcome under(const std::vector<std::string>& scopes, std::string* device) {
  const Program program({.own_devices = true});
  for (const std::string& scope : scopes) {
    if (Outcome failed = push(program.graph(), scope)) return failed;
  }
  Node node("NoOp");
  std::vector<dtg_value> made;
  if (Outcome failed = node.add(program.graph(), &made)) return failed;
  *device = device_of(program.graph(), made[0]);
  return std::nullopt;
}

std::string wrong_code(const Outcome& failed) {
  if (!failed) return "was accepted";
  return failed->code == DTG_INVALID_ARGUMENT ? "" : failed->text;
}

Verdict check_scope(const Json& row) {
  std::string device;
  const Outcome failed = under({row.at("string")}, &device);
  if (row.contains("spec_error")) {
    const std::string why = wrong_code(failed);
    return why.empty() ? Verdict::passed() : Verdict::failed(why);
  }
  if (failed) return Verdict::failed(failed->text);
  const std::string wanted = row.at("spec").at("to_string");
  return device == wanted ? Verdict::passed() : Verdict::failed("is \"" + device + "\", expected \"" + wanted + "\"");
}

// A constant with that device, run in a process with four CPU devices and no other task.
Verdict check_node(const Json& row) {
  const Json& wanted = row.at("runtime");
  if (!wanted.at("parses").get<bool>() && !row.contains("spec_error")) {
    return Verdict::skipped("a node's device may be written as in a scope here, TensorFlow's runtime refuses that");
  }
  Program program({.cpu_devices = 4, .own_devices = true});
  Node node("Const", "", row.at("string"));
  node.type("dtype", DTG_F32).tensor("value", make_scalar(DTG_F32, 3));
  std::vector<dtg_value> made;
  std::vector<Tensor> results;
  Outcome failed = node.add(program.graph(), &made);
  if (!failed) failed = program.run({}, {made[0]}, {}, &results);
  if (!wanted.at("placed").get<bool>()) {
    const std::string why = wrong_code(failed);
    return why.empty() ? Verdict::passed() : Verdict::failed(why);
  }
  return failed ? Verdict::failed(failed->text) : Verdict::passed();
}

Verdict check_merge(const Json& row) {
  std::string device;
  if (Outcome failed = under({row.at("outer"), row.at("inner")}, &device)) return Verdict::failed(failed->text);
  const std::string wanted = row.at("node_device_under_nested_scopes");
  return device == wanted ? Verdict::passed() : Verdict::failed("is \"" + device + "\", expected \"" + wanted + "\"");
}

}  // namespace

void check_device_names(const std::string& path, const Json& file, const Options& options, Report& report) {
  for (const Json& row : file.at("parse")) {
    const std::string name = stem(path) + "/" + row.at("string").dump();
    if (!options.wants(name)) continue;
    report.add(name + " as a scope", check_scope(row));
    report.add(name + " on a node", check_node(row));
  }
  for (const Json& row : file.at("merge")) {
    const std::string name = stem(path) + "/" + row.at("outer").dump() + " then " + row.at("inner").dump();
    if (options.wants(name)) report.add(name, check_merge(row));
  }
}

}  // namespace dtg::oracle
