// dtg graph: looks into a serialised graph, as dtg_graph_serialize writes it, or into the graph of a model, as dtg_model_export writes it.
// Main thread.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "commands.h"
#include "console.h"
#include "json_text.h"
#include "plan.h"

namespace dtg::cli {
namespace {

using nlohmann::json;

struct Node {
  std::string name, op, device;
  json outputs = json::array();  // {"dtype", "shape"}; shape null: unknown rank
};

// The file, whole; false with a complaint when it cannot be read.
bool read_file(const std::string& path, std::string* out) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  bool ok = file != nullptr;
  struct stat info = {};
  if (ok && fstat(fileno(file), &info) == 0 && S_ISDIR(info.st_mode)) errno = EISDIR, ok = false;
  char part[65536];
  for (size_t n; ok && (n = std::fread(part, 1, sizeof part, file)) > 0;) out->append(part, n);
  ok = ok && !std::ferror(file);
  if (!ok)
    complain("cannot read " + path + ": " + std::strerror(errno) + "\n  give a file that dtg_graph_serialize or dtg_model_export made");
  if (file) std::fclose(file);
  return ok;
}

dtg_error* text_of(dtg_error* (*ask)(const dtg_graph*, dtg_value, const char**, size_t*), const dtg_graph* graph, dtg_value value,
                   std::string* out) {
  const char* text = "";
  size_t size = 0;
  if (dtg_error* error = ask(graph, value, &text, &size)) return error;
  out->assign(text, size);
  return nullptr;
}

dtg_error* describe_output(const dtg_graph* graph, dtg_value node, size_t i, json* out) {
  dtg_value value;
  dtg_dtype dtype = 0;
  int64_t dims[32];
  int32_t rank = -1;
  if (dtg_error* error = dtg_value_output(graph, node, i, &value)) return error;
  if (dtg_error* error = dtg_value_dtype(graph, value, &dtype)) return error;
  if (dtg_error* error = dtg_value_shape(graph, value, dims, 32, &rank)) return error;
  json shape = nullptr;
  if (rank >= 0) shape = std::vector<int64_t>(dims, dims + std::min(rank, 32));
  *out = {{"dtype", dtg_dtype_name(dtype)}, {"shape", shape}};
  return nullptr;
}

dtg_error* describe_node(const dtg_graph* graph, size_t index, Node* out) {
  dtg_value value;
  size_t outputs = 0;
  if (dtg_error* error = dtg_graph_node_at(graph, index, &value)) return error;
  if (dtg_error* error = text_of(dtg_value_name, graph, value, &out->name)) return error;
  if (dtg_error* error = text_of(dtg_value_op, graph, value, &out->op)) return error;
  if (dtg_error* error = text_of(dtg_value_device, graph, value, &out->device)) return error;
  if (dtg_error* error = dtg_value_num_outputs(graph, value, &outputs)) return error;
  for (size_t i = 0; i < outputs; i++) {
    if (dtg_error* error = describe_output(graph, value, i, &out->outputs.emplace_back())) return error;
  }
  return nullptr;
}

std::string shape_text(const json& output) {
  std::string text = output["dtype"].get<std::string>();
  if (output["shape"].is_null()) return text + " of unknown rank";
  text += "[";
  for (size_t i = 0; i < output["shape"].size(); i++) {
    const int64_t dim = output["shape"][i];
    text += (i ? ", " : "") + (dim < 0 ? std::string("?") : std::to_string(dim));
  }
  return text + "]";
}

std::string node_line(const Node& node) {
  std::string line = node.name + " = " + paint(Color::cyan, node.op);
  for (size_t i = 0; i < node.outputs.size(); i++) line += (i ? ", " : "  ") + shape_text(node.outputs[i]);
  return line + (node.device.empty() ? "" : "  on " + node.device) + "\n";
}

std::string counts_text(const char* title, const std::map<std::string, size_t>& counts) {
  std::vector<std::pair<std::string, size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = paint(Color::bold, title) + "\n";
  for (const auto& [name, count] : sorted) {
    std::string number = std::to_string(count);
    number.insert(0, number.size() < 6 ? 6 - number.size() : 0, ' ');
    text += number + "  " + (name.empty() ? "(none asked for)" : name) + "\n";
  }
  return text;
}

// What the file holds: a graph alone, or with the inputs and outputs of a model.
struct Contents {
  Owned<dtg_graph> graph;
  json endpoints = json::object();
};

// How a safetensors file begins: the length of its header, and the header.
bool is_safetensors(const std::string& bytes) { return bytes.size() > 9 && bytes[8] == '{' && bytes[6] == 0 && bytes[7] == 0; }

dtg_error* load_model(const std::string& path, Contents* out) {
  dtg_model* model = nullptr;
  if (dtg_error* error = dtg_model_load(nullptr, path.data(), path.size(), nullptr, &model)) return error;
  const Owned<dtg_model> owned(model);
  dtg_string* endpoints = nullptr;
  if (dtg_error* error = dtg_model_endpoints(model, &endpoints)) return error;
  const Owned<dtg_string> text(endpoints);
  out->endpoints = json::parse(view(endpoints), nullptr, false);
  dtg_graph* graph = nullptr;
  if (dtg_error* error = dtg_model_graph(model, &graph)) return error;
  out->graph.reset(graph);
  return nullptr;
}

// False with a report, and the exit code in `code`.
bool load(const std::string& path, bool as_json, Contents* out, int* code) {
  std::string bytes;
  *code = kFailed;
  if (!read_file(path, &bytes)) return false;
  if (is_safetensors(bytes)) {
    bytes = {};
    dtg_error* const error = load_model(path, out);
    if (error) {
      *code = report(error, as_json,
                     "weights alone have no graph: dtg_model_export writes a model with its graph, dtg_graph_serialize a graph");
    }
    return !error;
  }
  dtg_graph* made = nullptr;
  if (dtg_error* error = dtg_graph_create(nullptr, &made)) return *code = report(error, as_json), false;
  out->graph.reset(made);
  dtg_error* const error = dtg_graph_import(made, bytes.data(), bytes.size());
  if (error) *code = report(error, as_json, path + " is no graph that this version reads");
  return !error;
}

std::string endpoint_lines(const json& endpoints) {
  std::string text;
  for (const auto& [key, list] : endpoints.items()) {
    text += paint(Color::bold, key) + "\n";
    for (const json& each : list) {
      const bool is_target = each["dtype"].get<std::string>().empty();
      text += "        " + each["name"].get<std::string>() + "  " + (is_target ? "a target" : shape_text(each)) + "\n";
    }
  }
  return text;
}

int show(const std::string& path, const std::vector<Node>& nodes, const json& endpoints, bool all, bool as_json) {
  std::map<std::string, size_t> ops, devices;
  for (const Node& node : nodes) ops[node.op]++, devices[node.device]++;
  if (as_json) {
    json list = json::array();
    for (const Node& node : nodes)
      list.push_back({{"name", node.name}, {"op", node.op}, {"device", node.device}, {"outputs", node.outputs}});
    json told{{"file", path}, {"node_count", nodes.size()}, {"ops", ops}, {"devices", devices}, {"nodes", list}};
    told.update(endpoints);
    return print(lines(told) + "\n") ? kOk : kFailed;
  }
  std::string text = path + ": " + std::to_string(nodes.size()) + (nodes.size() == 1 ? " node\n" : " nodes\n") + endpoint_lines(endpoints);
  if (all)
    for (const Node& node : nodes) text += node_line(node);
  else text += counts_text("ops", ops) + counts_text("devices", devices);
  return print(text) ? kOk : kFailed;
}

}  // namespace

int graph(int argc, char** argv) {
  bool as_json = false, all = false, plan = false;
  std::string path;
  PlanWish wish;
  Arguments arguments(
      "graph", "graph FILE [--nodes] [--plan [--pass NAME|all] [--dim N] [--devices N]] [--json]",
      "What is in a serialised graph: how many nodes of which ops, on which devices. The file is verified first. Of an exported\n"
      "model also its inputs and outputs.\n\n"
      "--plan shows how a session of this process would run all of it: what nobody reads is fetched or run, and\n"
      "placeholders are fed as they were declared. It gives the last pass of the planner and the program that comes of\n"
      "it: instructions, where each value lives, and the memory that a run works in.");
  arguments.position("FILE", true, &path, "what dtg_graph_serialize gave, or an exported model");
  arguments.flag("--nodes", &all, "every node, with types and shapes");
  arguments.flag("--plan", &plan, "how it would be run");
  arguments.text("--pass", "NAME|all", &wish.pass, "of the plan: one pass (prune, infer, ..., program), or all of them");
  arguments.number("--dim", "N", 0, int64_t{1} << 40, &wish.dim, "of the plan: what open dimensions of placeholders are; default 1");
  arguments.number("--devices", "N", 1, 256, &wish.devices, "of the plan: virtual CPU devices of the session; default 1");
  arguments.flag("--json", &as_json, "all of it as JSON");
  int code = kOk;
  if (!arguments.read(argc, argv, &code)) return code;
  if (!plan && (!wish.pass.empty() || wish.dim != 1 || wish.devices != 1))
    return complain("--pass, --dim and --devices are about a plan: say --plan too"), kUsage;
  Contents contents;
  if (!load(path, as_json, &contents, &code)) return code;
  dtg_graph* const made = contents.graph.get();
  wish.file = path;
  wish.as_json = as_json;
  if (plan) return show_plan(made, wish);
  std::vector<Node> nodes(dtg_graph_node_count(made));
  for (size_t i = 0; i < nodes.size(); i++) {
    if (dtg_error* error = describe_node(made, i, &nodes[i])) return report(error, as_json);
  }
  return show(path, nodes, contents.endpoints, all, as_json);
}

}  // namespace dtg::cli
