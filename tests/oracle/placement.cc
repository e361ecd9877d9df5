// Devices under replica_device_setter, op by op in the order in which they were made; see ps.h. The library has resource
// variables only: VarHandleOp stands for VariableV2, which the setter treats alike.
#include "ps.h"

namespace dtg::oracle {

std::string device_of(dtg_graph* graph, dtg_value value) {
  const char* text = nullptr;
  size_t length = 0;
  if (Outcome failed = outcome(dtg_value_device(graph, value, &text, &length))) return failed->text;
  return {text, length};
}

namespace {

struct Scene {
  Program program;
  dtg_value matrix{}, variable{};  // made before the setter, for ops that need inputs
};

Outcome set_scene(Scene& s) {
  const std::vector<int64_t> dims = {2, 2};
  if (Outcome failed = s.program.variable("before", DTG_F32, &dims, &s.variable)) return failed;
  return s.program.placeholder(DTG_F32, &s.matrix);
}

// N tasks of the ps job and one worker.
std::string cluster_text(const std::string& job, int tasks) {
  std::string text = "worker=unix:/w;" + job + "=";
  for (int i = 0; i < tasks; ++i) text += "unix:/" + std::to_string(i) + ",";
  return text;
}

Outcome push_setter(dtg_graph* graph, const Json& row) {
  const std::string ps = row.at("ps_device"), worker = row.at("worker_device");
  dtg_device_setter setter = DTG_DEVICE_SETTER_INIT;
  setter.ps_device = ps.c_str();
  setter.worker_device = worker.c_str();
  setter.keep_explicit = !row.at("merge_devices").get<bool>();
  setter.strategy = row.at("strategy") == "greedy_byte_size" ? DTG_SETTER_GREEDY_BYTES : DTG_SETTER_ROUND_ROBIN;
  if (row.at("given_as") == "ps_tasks") {
    setter.ps_tasks = row.at("ps_tasks");
    return outcome(dtg_graph_push_device_setter(graph, &setter));
  }
  const size_t start = 5, end = ps.find('/', start);
  const std::string text = cluster_text(ps.substr(start, end == ps.npos ? end : end - start), row.at("ps_tasks"));
  dtg_cluster* cluster = nullptr;
  if (Outcome failed = outcome(dtg_cluster_parse(text.c_str(), text.size(), &cluster))) return failed;
  setter.cluster = cluster;
  Outcome failed = outcome(dtg_graph_push_device_setter(graph, &setter));
  dtg_cluster_release(cluster);
  return failed;
}

Outcome add_op(Scene& s, const Json& item, dtg_value* made) {
  std::string op = item.at("op");
  if (op == "VariableV2") op = "VarHandleOp";
  Node node(op);
  if (op == "VarHandleOp") {
    node.text("shared_name", item.at("name")).type("dtype", dtg_dtype_from_name(item.at("dtype").get<std::string>().c_str()));
    node.shape("shape", item.at("shape").get<std::vector<int64_t>>());
  } else if (op == "MatMul") {
    node.input(s.matrix).input(s.matrix);
  } else if (op == "ReadVariableOp") {
    node.input(s.variable).type("dtype", DTG_F32);
  } else if (op == "Const") {
    node.type("dtype", DTG_F32).tensor("value", make_scalar(DTG_F32, 1));
  } else if (op == "FIFOQueueV2") {
    node.json("component_types", {{"type", "list(type)"}, {"value", Json::array({"float32"})}});
  } else if (op == "MutableHashTableV2") {
    node.type("key_dtype", DTG_I64).type("value_dtype", DTG_F32);
  }
  std::vector<dtg_value> values;
  Outcome failed = node.add(s.program.graph(), &values);
  if (!failed) *made = values[0];
  return failed;
}

Outcome push(dtg_graph* graph, const Json& device) {
  if (device.is_null()) return std::nullopt;
  const std::string text = device;
  return outcome(dtg_graph_push_device(graph, text.c_str(), text.size()));
}

Verdict check_row(const Json& row) {
  for (const Json& item : row.at("ops_in_creation_order")) {
    const std::string op = item.at("op"), why = op == "VariableV2" ? "" : missing_op(op);
    if (!why.empty()) return Verdict::skipped(why);
  }
  Scene s;
  dtg_graph* const graph = s.program.graph();
  if (Outcome failed = set_scene(s)) return Verdict::failed(failed->text);
  if (Outcome failed = push(graph, row.at("outer_scope"))) return Verdict::failed(failed->text);
  if (Outcome failed = push_setter(graph, row)) return Verdict::failed(failed->text);
  for (const Json& item : row.at("ops_in_creation_order")) {
    const std::string name = item.at("name").get<std::string>() + " (" + item.at("op").get<std::string>() + ")";
    const Json& explicit_device = item.at("explicit_device");
    dtg_value made{};
    if (Outcome failed = push(graph, explicit_device)) return Verdict::failed(name + ": " + failed->text);
    if (Outcome failed = add_op(s, item, &made)) return Verdict::failed(name + ": " + failed->text);
    if (!explicit_device.is_null()) {
      if (Outcome failed = outcome(dtg_graph_pop_device(graph))) return Verdict::failed(name + ": " + failed->text);
    }
    const std::string device = device_of(graph, made);
    if (device != item.at("device")) return Verdict::failed(name + " is on \"" + device + "\", expected " + item.at("device").dump());
  }
  return Verdict::passed();
}

}  // namespace

void check_placement(const std::string& path, const Json& file, const Options& options, Report& report) {
  int number = 0;
  for (const Json& row : file.at("rows")) {
    const std::string name = stem(path) + "/" + std::to_string(number++) + " " + row.at("strategy").get<std::string>();
    if (options.wants(name)) report.add(name, check_row(row));
  }
}

}  // namespace dtg::oracle
