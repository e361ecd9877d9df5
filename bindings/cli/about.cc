// dtg version and dtg ops: what this library is and what it can compute. Main thread.
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "commands.h"
#include "console.h"
#include "json_text.h"

namespace dtg::cli {
namespace {

using nlohmann::json;

// "images: T, boundaries: float32"; a list is "N * T".
std::string signature(const json& args) {
  std::string text;
  for (const json& arg : args) {
    text += (text.empty() ? "" : ", ") + arg.value("name", "") + ": ";
    if (arg.contains("number")) text += arg["number"].get<std::string>() + " * ";
    text += arg.value("type", "") + (arg.value("list", false) ? "..." : "");
  }
  return text;
}

std::string joined(const json& list) {
  std::string text;
  for (const json& item : list) text += (text.empty() ? "" : " ") + item.get<std::string>();
  return text;
}

void describe(const json& op) {
  std::string text = paint(Color::bold, op.value("name", "")) + "(" + signature(op["inputs"]) + ") -> (" + signature(op["outputs"]) + ")\n";
  if (!op.value("doc", "").empty()) text += "  " + op.value("doc", "") + "\n";
  for (const json& attr : op["attributes"]) {
    text += "  " + paint(Color::cyan, attr.value("name", "")) + ": " + attr.value("kind", "");
    if (attr.contains("types")) text += " of " + joined(attr["types"]);
    if (attr.contains("strings")) text += ", one of " + joined(attr["strings"]);
    text += attr.contains("default") ? ", default " + one_line(attr["default"]) + "\n" : "\n";
  }
  text += std::string("  ") + (op.value("stateful", false) ? "stateful, " : "") +
          (op.value("differentiable", false) ? "differentiable" : "not differentiable") + "\n";
  if (!op.value("kernels", "").empty()) text += "  kernels: " + op.value("kernels", "") + "\n";
  print(text);
}

int list(const json& table) {
  std::string text;
  for (const json& op : table) text += op.value("name", "") + "(" + signature(op["inputs"]) + ") -> (" + signature(op["outputs"]) + ")\n";
  return print(text) ? kOk : kFailed;
}

// What the library says to whoever builds with an op that is not there: some are TensorFlow's.
dtg_error* refusal_of(const std::string& name) {
  dtg_graph* graph = nullptr;
  if (dtg_error* const error = dtg_graph_create(nullptr, &graph)) return error;
  const Owned<dtg_graph> owned(graph);
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  spec.type = name.c_str();
  return dtg_graph_add_op(graph, &spec, nullptr, 0);
}

int one(const json& table, const std::string& name, bool as_json) {
  std::vector<std::string> names;
  for (const json& op : table) {
    names.push_back(op.value("name", ""));
    if (names.back() != name) continue;
    if (as_json) return print(lines(op) + "\n") ? kOk : kFailed;
    return describe(op), kOk;
  }
  dtg_error* const refused = refusal_of(name);
  if (dtg_error_code(refused) == DTG_UNIMPLEMENTED) return report(refused, as_json);
  dtg_error_release(refused);
  const std::string near = closest(name, names);
  complain("there is no op \"" + name + "\"" + (near.empty() ? "" : "; did you mean " + near + "?") + "\n  all ops: dtg ops");
  return kFailed;
}

}  // namespace

int version(int argc, char** argv) {
  bool as_json = false;
  Arguments arguments("version", "version [--json]",
                      "Versions of the library that is loaded and of the headers this command was made with.");
  arguments.flag("--json", &as_json, "as JSON");
  int code = kOk;
  if (!arguments.read(argc, argv, &code)) return code;
  const std::string abi = std::to_string(dtg_abi_version() >> 16) + "." + std::to_string(dtg_abi_version() & 0xffff);
  const std::string headers =
      std::to_string(DTG_VERSION_MAJOR) + "." + std::to_string(DTG_VERSION_MINOR) + "." + std::to_string(DTG_VERSION_PATCH);
  json features = json::object();
  std::string names;
  for (const char* name : {"cpu", "cuda", "tls"}) {
    const bool has = dtg_has_feature(name) != 0;
    features[name] = has;
    if (has) names += std::string(" ") + name;
  }
  // clang-format off
  if (as_json)
    return print(lines(json{{"version", dtg_version()}, {"abi", abi}, {"headers", headers}, {"features", features}}) + "\n")
               ? kOk : kFailed;
  // clang-format on
  return print("dtg " + std::string(dtg_version()) + ", ABI " + abi + ", headers " + headers + ", features" + names + "\n") ? kOk : kFailed;
}

int ops(int argc, char** argv) {
  bool as_json = false;
  std::string name;
  Arguments arguments("ops", "ops [NAME] [--json]", "The ops of the library: their inputs, outputs, attributes and the types they run on.");
  arguments.position("NAME", false, &name, "one op, with all that is known of it");
  arguments.flag("--json", &as_json, "as JSON, for programs that generate code");
  int code = kOk;
  if (!arguments.read(argc, argv, &code)) return code;
  dtg_string* text = nullptr;
  if (dtg_error* error = dtg_ops_json(nullptr, &text)) return report(error, as_json);
  const Owned<dtg_string> owned(text);
  if (as_json && name.empty()) return print(view(text)) ? kOk : kFailed;
  const json table = json::parse(view(text), nullptr, false);
  if (!table.is_array()) return complain("the op table of the library cannot be read; command and library do not belong together"), kFailed;
  return name.empty() ? list(table) : one(table, name, as_json);
}

}  // namespace dtg::cli
